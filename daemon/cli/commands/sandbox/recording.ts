/** `roomd recording`: recordings of a sandbox's screen, and films of them. */

import type { Command } from "commander";
import type { Download } from "../../../../sdk/typescript/src/client.ts";
import {
  type RecordingRecord,
  recordingData,
  recordingDelete,
  recordingFilm,
  recordingGet,
  recordingList,
  recordingStart,
  recordingStop,
} from "../../../../shared/api/recordings.ts";
import { CliError } from "../../kit/cli-error.ts";
import { call, download } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { bytesText, fieldLines, type JsonOption, show, showValue, write } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { saveAnswer, whole } from "../../kit/save-answer.ts";
import { seconds } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";

export function recordingCommand(): Command {
  return commandGroup("recording", {
    summary: "recordings of a sandbox's screen, and films of them",
    examples: [
      "roomd recording start office clerk",
      "roomd recording stop office clerk",
      "roomd recording film office clerk --output clerk.mp4",
    ],
  })
    .addCommand(
      verb(recordingStart, "start <room> <agent>", "start recording the screen", {
        examples: ["roomd recording start office clerk", "roomd recording start office clerk --for 10m"],
        options: [["--for <time>", "end it after this time; an hour if absent", seconds]],
        fields: { for: "max_seconds" },
        lines: fieldLines,
      }),
    )
    .addCommand(stop())
    .addCommand(
      verb(recordingList, "list <room> <agent>", "list the recordings of a screen, the newest first", {
        notes: ["Recordings of a destroyed sandbox are found by its sandbox_id."],
        examples: ["roomd recording list office clerk"],
        lines: columns(
          ["RECORDING", (each) => each.recording_id],
          ["STATE", (each) => each.end_reason ?? each.state],
          ["STARTED", (each) => each.started_at],
          ["SECONDS", (each) => (each.duration_ms / 1000).toFixed(1)],
          ["SIZE", (each) => bytesText(each.size_bytes)],
          ["PICTURE", (each) => `${each.width}x${each.height}`],
        ),
      }),
    )
    .addCommand(
      verb(recordingGet, "get <room> <agent>", "show a recording's record", {
        examples: ["roomd recording get office clerk rec_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
        args: [["<recording>", "its recording_id"]],
        lines: recordLines,
      }),
    )
    .addCommand(film())
    .addCommand(save())
    .addCommand(
      verb(recordingDelete, "delete <room> <agent>", "delete a recording", {
        examples: ["roomd recording delete office clerk rec_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
        args: [["<recording>", "its recording_id"]],
        lines: (done) => [`deleted ${done.recording_id}`],
      }),
    );
}

function stop(): Command {
  return command("stop <room> <agent>", {
    summary: "stop recording",
    examples: ["roomd recording stop office clerk"],
  })
    .argument("[recording]", "its recording_id; the running recording if absent")
    .action(async (room_id: string, sandbox: string, given: string | undefined, options: JsonOption) => {
      const recording_id = given ?? (await goingOn(room_id, sandbox)).recording_id;
      const reply = await call(recordingStop, { room_id, sandbox, recording_id });
      await show(reply, options, fieldLines);
    });
}

interface OutputOptions extends JsonOption {
  output: string;
}

const WHICH = "its recording_id; the newest if absent";

function film(): Command {
  return command("film <room> <agent>", {
    summary: "make a film of a recording, as MP4",
    notes: [
      "A machine of the template film makes it, which the operator builds once by `roomd template build film`.",
      "With --output - the film goes to standard output as it is made.",
    ],
    examples: [
      "roomd recording film office clerk --output clerk.mp4",
      "roomd recording film office clerk rec_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2 --output - | mpv -",
    ],
  })
    .argument("[recording]", WHICH)
    .requiredOption("--output <file>", "write the film there")
    .action(async (room_id: string, sandbox: string, given: string | undefined, options: OutputOptions) => {
      const recording_id = given ?? (await newest(room_id, sandbox)).recording_id;
      const made = await withProgress("starting the machine that makes films", () =>
        download(recordingFilm, { room_id, sandbox, recording_id }),
      );
      await writeOut(made, recording_id, "making the film", options);
    });
}

function save(): Command {
  return command("save <room> <agent>", {
    summary: "write a recording to a file in its stored format",
    notes: ["docs/screen.md describes the format."],
    examples: ["roomd recording save office clerk --output clerk.rfb"],
  })
    .argument("[recording]", WHICH)
    .requiredOption("--output <file>", "write it there; - is standard output")
    .action(async (room_id: string, sandbox: string, given: string | undefined, options: OutputOptions) => {
      const recording_id = given ?? (await newest(room_id, sandbox)).recording_id;
      await writeOut(
        await download(recordingData, { room_id, sandbox, recording_id }),
        recording_id,
        "reading it",
        options,
      );
    });
}

async function writeOut(answer: Download, recording_id: string, doing: string, options: OutputOptions): Promise<void> {
  const { output } = options;
  if (output === "-") {
    for await (const chunk of whole(answer)) await write(process.stdout, chunk);
    return;
  }
  const size_bytes = await withProgress(doing, (progress) =>
    saveAnswer(answer, output, (bytes) => progress.say(`${doing}, ${bytesText(bytes)} so far`)),
  );
  const value = { recording_id, local: output, size_bytes };
  await showValue(value, options, () => [`wrote ${output}, ${bytesText(size_bytes)}`]);
}

async function goingOn(room_id: string, sandbox: string): Promise<RecordingRecord> {
  const { items } = (await call(recordingList, { room_id, sandbox })).value;
  const found = items.find(({ state }) => state === "recording");
  if (!found) throw new CliError(`The screen of ${sandbox} is not being recorded.`);
  return found;
}

async function newest(room_id: string, sandbox: string): Promise<RecordingRecord> {
  const [first] = (await call(recordingList, { room_id, sandbox })).value.items;
  if (!first) throw new CliError(`Nothing was recorded of ${sandbox}: start with \`roomd recording start\`.`);
  return first;
}
