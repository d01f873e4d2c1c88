/** `roomd room`: rooms as a client sees them. */
import type { Command } from "commander";
import { type RoomGlance, roomOverview } from "../../../../shared/api/overview/room-overview.ts";
import * as rooms from "../../../../shared/api/rooms.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { bytesText, counted, type JsonOption, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { labelFilter, pair, seconds, secondsOrNone } from "../../kit/values.ts";
import { columns, verb } from "../../kit/verb.ts";
import { checkpointListCommand, forkRoomCommand, restoreRoomCommand, takeCheckpointCommand } from "./checkpoint.ts";
import { moveRoomCommand } from "./move.ts";
import { backupRoomCommand } from "./room-file.ts";

export function roomCommand(): Command {
  return commandGroup("room", {
    summary: "rooms: the container of a run, with its sandboxes and its shared drive",
    examples: ["roomd room create build-42", "roomd room list"],
  })
    .addCommand(
      verb(rooms.roomCreate, "create <room>", "create a room", {
        examples: ["roomd room create build-42", "roomd room create build-42 --label team=web --ttl 2h"],
        options: [
          ["--label <key=value>", "a label of your own; repeatable", pair],
          ["--ttl <time>", "destroy the room after this time, such as 90m or 7d", seconds],
          ["--host <host>", "on this host of a cluster (default: a host with free memory)"],
          ["--host-label <name=value>", "on a host that has this label; repeatable", pair],
        ],
        lines: (room) => [`room ${room.room_id} is ${room.state} (${room.room_uid})`],
      }),
    )
    .addCommand(
      verb(rooms.roomList, "list", "list the organization's rooms", {
        examples: ["roomd room list", "roomd room list --state active --label team=web"],
        options: filters(),
        lines: columns(
          ["ROOM", (room) => room.room_id],
          // The other fields of the room's state are unknown.
          ["STATE", (room) => (room.status.reason === "host_unreachable" ? "host silent" : room.state)],
          ["SANDBOXES", (room) => room.sandbox_count],
          ["DRIVE", (room) => bytesText(room.drive.used_bytes)],
          ["FILES", (room) => room.drive.file_count],
          ["CREATED", (room) => room.created_at],
          ["EXPIRES", (room) => room.expires_at],
        ),
      }),
    )
    .addCommand(
      verb(
        roomOverview,
        "overview",
        "print an overview of rooms: active and blocked agents, messages, drive and cost",
        {
          examples: ["roomd room overview", "roomd room overview --json | jq '.items[] | select(.in_circle)'"],
          notes: [
            "Blocked agents wait for a reply or at a barrier. `roomd waits ROOM` shows their waits and deadlocks.",
          ],
          options: filters(),
          lines: columns(
            ["ROOM", (room) => room.room_id],
            ["STATE", (room) => (room.warnings?.length ? "host silent" : room.state)],
            ["AGENTS", (room) => room.agents],
            ["RUNNING", (room) => room.running],
            ["BLOCKED", blockedText],
            ["MSG/MIN", (room) => room.messages_last_minute],
            ["DRIVE", (room) => bytesText(room.drive.used_bytes)],
            ["HOURS", (room) => room.cost && (room.cost.sandbox_seconds / 3600).toFixed(1)],
            ["CREDITS", (room) => room.cost?.credits.toFixed(2) ?? null],
            ["CREATED", (room) => room.created_at],
          ),
        },
      ),
    )
    .addCommand(
      verb(rooms.roomGet, "get <room>", "print a room's record", {
        examples: ["roomd room get build-42", "roomd room get build-42 --json"],
        lines: recordLines,
      }),
    )
    .addCommand(
      verb(rooms.roomUpdate, "update <room>", "change a room's labels and its end; the others stay", {
        examples: ["roomd room update build-42 --expires-in 2h", "roomd room update build-42 --expires-in none"],
        options: [
          ["--label <key=value>", "a label; repeatable; these replace all earlier ones", pair],
          ["--expires-in <time>", "destroy the room this long after now, or none", secondsOrNone],
        ],
        lines: recordLines,
      }),
    )
    .addCommand(takeCheckpointCommand())
    .addCommand(checkpointListCommand())
    .addCommand(forkRoomCommand())
    .addCommand(restoreRoomCommand())
    .addCommand(moveRoomCommand())
    .addCommand(backupRoomCommand())
    .addCommand(destroy());
}

const filters = () => [
  choice("--state <state>", "only rooms in this state", rooms.ROOM_STATES),
  ["--label <key=value>", "only rooms with this label", labelFilter] as const,
  ["--host <host>", "only rooms on this host of a cluster"] as const,
  choice("--order <order>", "desc: the newest first", ["asc", "desc"]),
];

const blockedText = ({ blocked, in_circle, truncated }: RoomGlance): string =>
  `${blocked}${truncated ? "+" : ""}${in_circle ? " circle" : ""}`;

interface DestroyOptions extends JsonOption {
  deleteDrive?: boolean;
}

function destroy(): Command {
  return command("destroy <room>", {
    summary: "destroy a room with all its sandboxes",
    examples: ["roomd room destroy build-42", "roomd room destroy build-42 --delete-drive"],
  })
    .alias("delete")
    .option("--delete-drive", "erase its drive now instead of keeping it for drive.retention")
    .action(async (room_id: string, options: DestroyOptions) => {
      const drive = options.deleteDrive ? "delete" : undefined;
      const reply = await withProgress(`destroying room ${room_id}`, () => call(rooms.roomDestroy, { room_id, drive }));
      await show(reply, options, (done) => {
        const sandboxes = counted(done.sandboxes_destroyed.length, "sandbox", "sandboxes");
        const kept = done.drive.until_at === null ? "" : ` until ${done.drive.until_at}`;
        return [
          `room ${room_id} is ${done.state} with ${sandboxes} (${done.duration_ms} ms)`,
          `its drive is ${done.drive.state}${kept}`,
        ];
      });
    });
}
