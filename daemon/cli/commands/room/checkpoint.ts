/** Checkpoint commands of `roomd room`: take a checkpoint, and fork or restore a room from one. */
import type { Command } from "commander";
import {
  checkpointCreate,
  checkpointDelete,
  checkpointGet,
  checkpointList,
  roomFork,
  roomRestore,
} from "../../../../shared/api/checkpoints.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { bytesText, counted, type JsonOption, moreLines, show, table } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { seconds, word } from "../../kit/values.ts";
import { restoreFile } from "./room-file.ts";

export function checkpointCommand(): Command {
  return commandGroup("checkpoint", {
    summary: "checkpoints: what a room was at one instant, with all its sandboxes",
    examples: ["roomd room checkpoints build-42", "roomd checkpoint get build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
  })
    .addCommand(get())
    .addCommand(remove());
}

export function checkpointListCommand(): Command {
  const about = {
    summary: "list a room's checkpoints",
    examples: ["roomd room checkpoints build-42", "roomd room checkpoints build-42 --json"],
  };
  return asList(command("checkpoints <room>", about)).action(
    async (room_id: string, { limit, cursor, json }: ListOptions) => {
      const reply = await call(checkpointList, { room_id, limit, cursor });
      await show(reply, { json }, ({ items, next_cursor }) => [
        ...table(
          ["CHECKPOINT", "NAME", "SANDBOXES", "DRIVE", "SIZE", "PAUSED", "CREATED", "EXPIRES"],
          items.map((each) => [
            each.checkpoint_id,
            each.name ?? "",
            each.snapshots.length,
            bytesText(each.drive_bytes),
            bytesText(each.size_bytes),
            `${each.paused_ms} ms`,
            each.created_at,
            each.expires_at ?? "",
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    },
  );
}

function get(): Command {
  return command("get <room> <checkpoint>", {
    summary: "show a checkpoint's record",
    examples: ["roomd checkpoint get build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
  }).action(async (room_id: string, checkpoint_id: string, options: JsonOption) => {
    await show(await call(checkpointGet, { room_id, checkpoint_id }), options, recordLines);
  });
}

function remove(): Command {
  return command("delete <room> <checkpoint>", {
    summary: "delete a checkpoint; rooms that were made of it keep what they need",
    examples: ["roomd checkpoint delete build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
  }).action(async (room_id: string, checkpoint_id: string, options: JsonOption) => {
    const reply = await call(checkpointDelete, { room_id, checkpoint_id });
    await show(reply, options, (done) => [`checkpoint ${done.checkpoint_id} is ${done.state}`]);
  });
}

interface TakeOptions extends JsonOption {
  name?: string;
  expires?: number;
}

export function takeCheckpointCommand(): Command {
  return command("checkpoint <room>", {
    summary: "keep what a room is now, with all its sandboxes; they go on after a moment",
    examples: ["roomd room checkpoint build-42 --name before", "roomd room checkpoint build-42 --expires 30d"],
  })
    .option("--name <name>", "a name for people")
    .option("--expires <time>", "delete it after this time (default: 7d)", seconds)
    .action(async (room_id: string, { name, expires, json }: TakeOptions) => {
      const reply = await withProgress(`taking a checkpoint of room ${room_id}`, () =>
        call(checkpointCreate, { room_id, name, expires_in_seconds: expires }),
      );
      await show(reply, { json }, (made) => [
        `${made.checkpoint_id}: ${bytesText(made.size_bytes)}, ${counted(made.snapshots.length, "sandbox", "sandboxes")} stood still for ${made.paused_ms} ms`,
      ]);
    });
}

interface ForkOptions extends JsonOption {
  checkpoint?: string;
}

export function forkRoomCommand(): Command {
  return command("fork <room> <new-room>", {
    summary: "make another room in which every agent goes on where it stood",
    examples: [
      "roomd room fork build-42 build-43",
      "roomd room fork build-42 build-43 --checkpoint chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2",
    ],
  })
    .option("--checkpoint <id>", "as of this checkpoint (default: of one that is taken now)")
    .action(async (source_room_id: string, room_id: string, { checkpoint, json }: ForkOptions) => {
      const reply = await withProgress(`making room ${room_id} of room ${source_room_id}`, () =>
        call(roomFork, { source_room_id, room_id, checkpoint_id: checkpoint }),
      );
      await show(reply, { json }, ({ room, checkpoint_id, items }) => [
        `room ${room.room_id} is ${room.state}, as of ${checkpoint_id}`,
        ...items.map(itemText),
      ]);
    });
}

interface RestoreOptions extends JsonOption {
  name?: string;
  host?: string;
}

export function restoreRoomCommand(): Command {
  return command("restore <room-or-file>", {
    summary: "turn a room back to a checkpoint, or make a room of a room's file",
    examples: [
      "roomd room restore build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2",
      "roomd room restore build-42.room",
      "roomd room restore - --name build-43 < build-42.room",
    ],
    notes: ["What a room has become since a checkpoint is lost. A file makes another room, and - is standard input."],
  })
    .argument("[checkpoint]", "as of this checkpoint; without one a file is meant")
    .option("--name <name>", "of a file: the new room's name (default: the former room's)")
    .option("--host <host>", "of a file: on this one of several hosts", word)
    .action(async (given: string, checkpoint: string | undefined, { name, host, json }: RestoreOptions) => {
      if (checkpoint === undefined) return await restoreFile(given, { name, host, json });
      if (name !== undefined || host !== undefined)
        throw new CliError("--name and --host are of a room's file.", EXIT.usage);
      await turnBack(given, checkpoint, { json });
    });
}

async function turnBack(room_id: string, checkpoint_id: string, options: JsonOption): Promise<void> {
  const reply = await withProgress(`turning room ${room_id} back`, () => call(roomRestore, { room_id, checkpoint_id }));
  await show(reply, options, ({ room, items }) => [
    `room ${room.room_id} is ${room.state}, as of ${checkpoint_id}`,
    ...items.map(itemText),
  ]);
}

type Item = OutputOf<typeof roomFork>["items"][number];

const itemText = ({ agent_id, sandbox, problem }: Item): string =>
  sandbox === null
    ? `  ${agent_id} was not made: ${problem?.detail ?? "no reason was given"}`
    : `  sandbox ${agent_id} is ${sandbox.state}: cid ${sandbox.guest_cid}`;
