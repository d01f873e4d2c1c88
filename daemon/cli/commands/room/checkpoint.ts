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
import { bytesText, counted, type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { seconds, word } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";
import { restoreFile } from "./room-file.ts";

export function checkpointCommand(): Command {
  return commandGroup("checkpoint", {
    summary: "checkpoints: consistent copies of a room with all its sandboxes",
    examples: ["roomd room checkpoints build-42", "roomd checkpoint get build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
  })
    .addCommand(
      verb(checkpointGet, "get <room> <checkpoint>", "show a checkpoint's record", {
        examples: ["roomd checkpoint get build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
        lines: recordLines,
      }),
    )
    .addCommand(
      verb(
        checkpointDelete,
        "delete <room> <checkpoint>",
        "delete a checkpoint; rooms forked from it keep the data they need",
        {
          examples: ["roomd checkpoint delete build-42 chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2"],
          lines: (done) => [`checkpoint ${done.checkpoint_id} is ${done.state}`],
        },
      ),
    );
}

export const checkpointListCommand = (): Command =>
  verb(checkpointList, "checkpoints <room>", "list a room's checkpoints", {
    examples: ["roomd room checkpoints build-42", "roomd room checkpoints build-42 --json"],
    lines: columns(
      ["CHECKPOINT", (each) => each.checkpoint_id],
      ["NAME", (each) => each.name],
      ["SANDBOXES", (each) => each.snapshots.length],
      ["DRIVE", (each) => bytesText(each.drive_bytes)],
      ["SIZE", (each) => bytesText(each.size_bytes)],
      ["PAUSED", (each) => `${each.paused_ms} ms`],
      ["CREATED", (each) => each.created_at],
      ["EXPIRES", (each) => each.expires_at],
    ),
  });

export const takeCheckpointCommand = (): Command =>
  verb(
    checkpointCreate,
    "checkpoint <room>",
    "take a checkpoint of a room with all its sandboxes, which are paused briefly",
    {
      examples: ["roomd room checkpoint build-42 --name before", "roomd room checkpoint build-42 --expires 30d"],
      options: [
        ["--name <name>", "a human-readable name"],
        ["--expires <time>", "delete it after this time (default: 7d)", seconds],
      ],
      fields: { expires: "expires_in_seconds" },
      progress: ({ room_id }) => `taking a checkpoint of room ${room_id}`,
      lines: (made) => [
        `${made.checkpoint_id}: ${bytesText(made.size_bytes)}, ${counted(made.snapshots.length, "sandbox", "sandboxes")} paused for ${made.paused_ms} ms`,
      ],
    },
  );

export const forkRoomCommand = (): Command =>
  verb(roomFork, "fork <room> <new-room>", "fork a room from a checkpoint: every agent continues from its state", {
    examples: [
      "roomd room fork build-42 build-43",
      "roomd room fork build-42 build-43 --checkpoint chk_01KB3ZJ0C8V5Y6W7X8Z9A0B1C2",
    ],
    options: [["--checkpoint <id>", "from this checkpoint (default: a new one)"]],
    fields: { room: "source_room_id", new_room: "room_id" },
    progress: ({ room_id, source_room_id }) => `creating room ${room_id} from room ${source_room_id}`,
    lines: ({ room, checkpoint_id, items }) => [
      `room ${room.room_id} is ${room.state}, as of ${checkpoint_id}`,
      ...items.map(itemText),
    ],
  });

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
