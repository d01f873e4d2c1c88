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
    summary: "checkpoints: consistent copies of a room with all its sandboxes",
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
    summary: "delete a checkpoint; rooms forked from it keep the data they need",
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
    summary: "take a checkpoint of a room with all its sandboxes, which are paused briefly",
    examples: ["roomd room checkpoint build-42 --name before", "roomd room checkpoint build-42 --expires 30d"],
  })
    .option("--name <name>", "a human-readable name")
    .option("--expires <time>", "delete it after this time (default: 7d)", seconds)
    .action(async (room_id: string, { name, expires, json }: TakeOptions) => {
      const reply = await withProgress(`taking a checkpoint of room ${room_id}`, () =>
        call(checkpointCreate, { room_id, name, expires_in_seconds: expires }),
      );
      await show(reply, { json }, (made) => [
        `${made.checkpoint_id}: ${bytesText(made.size_bytes)}, ${counted(made.snapshots.length, "sandbox", "sandboxes")} paused for ${made.paused_ms} ms`,
      ]);
    });
}

interface ForkOptions extends JsonOption {
  checkpoint?: string;
}

export function forkRoomCommand(): Command {
  return command("fork <room> <new-room>", {
    summary: "fork a room from a checkpoint: every agent continues from its state",
    examples: [
      "roomd room fork build-42 build-43",
      "roomd room fork build-42 build-43 --checkpoint chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2",
    ],
  })
    .option("--checkpoint <id>", "from this checkpoint (default: a new one)")
    .action(async (source_room_id: string, room_id: string, { checkpoint, json }: ForkOptions) => {
      const reply = await withProgress(`creating room ${room_id} from room ${source_room_id}`, () =>
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
    summary: "roll a room back to a checkpoint, or create a room from a backup file",
    examples: [
      "roomd room restore build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2",
      "roomd room restore build-42.room",
      "roomd room restore - --name build-43 < build-42.room",
    ],
    notes: ["Changes since the checkpoint are lost. A file creates another room; - is standard input."],
  })
    .argument("[checkpoint]", "to this checkpoint; without it the argument is a file")
    .option("--name <name>", "with a file: the new room's name (default: the original room's)")
    .option("--host <host>", "with a file: on this host of a cluster", word)
    .action(async (given: string, checkpoint: string | undefined, { name, host, json }: RestoreOptions) => {
      if (checkpoint === undefined) return await restoreFile(given, { name, host, json });
      if (name !== undefined || host !== undefined)
        throw new CliError("--name and --host need a room's file.", EXIT.usage);
      await turnBack(given, checkpoint, { json });
    });
}

async function turnBack(room_id: string, checkpoint_id: string, options: JsonOption): Promise<void> {
  const reply = await withProgress(`rolling room ${room_id} back`, () => call(roomRestore, { room_id, checkpoint_id }));
  await show(reply, options, ({ room, items }) => [
    `room ${room.room_id} is ${room.state}, as of ${checkpoint_id}`,
    ...items.map(itemText),
  ]);
}

type Item = OutputOf<typeof roomFork>["items"][number];

const itemText = ({ agent_id, sandbox, problem }: Item): string =>
  sandbox === null
    ? `  ${agent_id} was not created: ${problem?.detail ?? "no reason was given"}`
    : `  sandbox ${agent_id} is ${sandbox.state}: cid ${sandbox.guest_cid}`;
