/** `roomd room`: rooms as a client sees them. */
import type { Command } from "commander";
import { type RoomGlance, roomOverview } from "../../../../shared/api/overview/room-overview.ts";
import * as rooms from "../../../../shared/api/rooms.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { bytesText, counted, type JsonOption, moreLines, show, table } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { labelFilter, pair, seconds, secondsOrNone } from "../../kit/values.ts";
import { checkpointListCommand, forkRoomCommand, restoreRoomCommand, takeCheckpointCommand } from "./checkpoint.ts";
import { moveRoomCommand } from "./move.ts";
import { backupRoomCommand } from "./room-file.ts";

export { asList, type ListOptions };

export function roomCommand(): Command {
  return commandGroup("room", {
    summary: "rooms: the container of a run, with its sandboxes and its shared drive",
    examples: ["roomd room create build-42", "roomd room list"],
  })
    .addCommand(create())
    .addCommand(list())
    .addCommand(overview())
    .addCommand(get())
    .addCommand(update())
    .addCommand(takeCheckpointCommand())
    .addCommand(checkpointListCommand())
    .addCommand(forkRoomCommand())
    .addCommand(restoreRoomCommand())
    .addCommand(moveRoomCommand())
    .addCommand(backupRoomCommand())
    .addCommand(destroy());
}

interface CreateOptions extends JsonOption {
  label?: Record<string, string>;
  ttl?: number;
  host?: string;
  hostLabel?: Record<string, string>;
}

function create(): Command {
  return command("create <room>", {
    summary: "create a room",
    examples: ["roomd room create build-42", "roomd room create build-42 --label team=web --ttl 2h"],
  })
    .option("--label <key=value>", "a label of your own; repeatable", pair)
    .option("--ttl <time>", "destroy the room after this time, such as 90m or 7d", seconds)
    .option("--host <host>", "on this host of a cluster (default: a host with free memory)")
    .option("--host-label <name=value>", "on a host that has this label; repeatable", pair)
    .action(async (room_id: string, options: CreateOptions) => {
      const { label: labels, ttl: ttl_seconds, host, hostLabel: host_labels } = options;
      const reply = await call(rooms.roomCreate, { room_id, labels, ttl_seconds, host, host_labels });
      await show(reply, options, (room) => [`room ${room.room_id} is ${room.state} (${room.room_uid})`]);
    });
}

interface RoomListOptions extends ListOptions {
  state?: rooms.RoomState;
  label?: string;
  host?: string;
  order?: "asc" | "desc";
}

function list(): Command {
  const about = {
    summary: "list the organization's rooms",
    examples: ["roomd room list", "roomd room list --state active --label team=web"],
  };
  return asList(command("list", about))
    .addOption(choice("--state <state>", "only rooms in this state", rooms.ROOM_STATES))
    .option("--label <key=value>", "only rooms with this label", labelFilter)
    .option("--host <host>", "only rooms on this host of a cluster")
    .addOption(choice("--order <order>", "desc: the newest first", ["asc", "desc"]))
    .action(async ({ label, state, host, order, limit, cursor, json }: RoomListOptions) => {
      const reply = await call(rooms.roomList, { state, label, host, order, limit, cursor });
      await show(reply, { json }, ({ items, next_cursor }) => [
        ...table(
          ["ROOM", "STATE", "SANDBOXES", "DRIVE", "FILES", "CREATED", "EXPIRES"],
          items.map((room) => [
            room.room_id,
            // The other fields of the room's state are unknown.
            room.status.reason === "host_unreachable" ? "host silent" : room.state,
            room.sandbox_count,
            bytesText(room.drive.used_bytes),
            room.drive.file_count,
            room.created_at,
            room.expires_at,
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    });
}

function overview(): Command {
  const about = {
    summary: "print an overview of rooms: active and blocked agents, messages, drive and cost",
    examples: ["roomd room overview", "roomd room overview --json | jq '.items[] | select(.in_circle)'"],
    notes: ["Blocked agents wait for a reply or at a barrier. `roomd waits ROOM` shows their waits and deadlocks."],
  };
  return asList(command("overview", about))
    .addOption(choice("--state <state>", "only rooms in this state", rooms.ROOM_STATES))
    .option("--label <key=value>", "only rooms with this label", labelFilter)
    .option("--host <host>", "only rooms on this host of a cluster")
    .addOption(choice("--order <order>", "desc: the newest first", ["asc", "desc"]))
    .action(async ({ label, state, host, order, limit, cursor, json }: RoomListOptions) => {
      const reply = await call(roomOverview, { state, label, host, order, limit, cursor });
      await show(reply, { json }, ({ items, next_cursor }) => [
        ...table(
          ["ROOM", "STATE", "AGENTS", "RUNNING", "BLOCKED", "MSG/MIN", "DRIVE", "HOURS", "CREDITS", "CREATED"],
          items.map((room) => [
            room.room_id,
            room.warnings?.length ? "host silent" : room.state,
            room.agents,
            room.running,
            blockedText(room),
            room.messages_last_minute,
            bytesText(room.drive.used_bytes),
            room.cost && (room.cost.sandbox_seconds / 3600).toFixed(1),
            room.cost?.credits.toFixed(2) ?? null,
            room.created_at,
          ]),
        ),
        ...moreLines(next_cursor),
      ]);
    });
}

const blockedText = ({ blocked, in_circle, truncated }: RoomGlance): string =>
  `${blocked}${truncated ? "+" : ""}${in_circle ? " circle" : ""}`;

function get(): Command {
  return command("get <room>", {
    summary: "print a room's record",
    examples: ["roomd room get build-42", "roomd room get build-42 --json"],
  }).action(async (room_id: string, options: JsonOption) => {
    await show(await call(rooms.roomGet, { room_id }), options, recordLines);
  });
}

interface UpdateOptions extends JsonOption {
  label?: Record<string, string>;
  expiresIn?: number | "none";
}

function update(): Command {
  return command("update <room>", {
    summary: "change a room's labels and its end; the others stay",
    examples: ["roomd room update build-42 --expires-in 2h", "roomd room update build-42 --expires-in none"],
  })
    .option("--label <key=value>", "a label; repeatable; these replace all earlier ones", pair)
    .option("--expires-in <time>", "destroy the room this long after now, or none", secondsOrNone)
    .action(async (room_id: string, options: UpdateOptions) => {
      const { label: labels, expiresIn } = options;
      const expires_in_seconds = expiresIn === "none" ? null : expiresIn;
      const reply = await call(rooms.roomUpdate, { room_id, labels, expires_in_seconds });
      await show(reply, options, recordLines);
    });
}

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
