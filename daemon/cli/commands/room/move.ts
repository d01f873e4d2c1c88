/** Commands that move rooms between the hosts of one service. */
import type { Command } from "commander";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { hostEvacuate } from "../../../../shared/api/hosts.ts";
import { roomMove } from "../../../../shared/api/moves.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { bytesText, counted, type JsonOption, print, show, showValue } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";

interface MoveOptions extends JsonOption {
  to: string;
  force?: boolean;
}

const FORCE = "even if the memory of snapshots is unusable on that host, or a sandbox cannot be saved now";

export function moveRoomCommand(): Command {
  return command("move <room>", {
    summary: "move a room to another host of the service, with its sandboxes",
    examples: ["roomd room move build-42 --to host-2", "roomd room move build-42 --to host-2 --force"],
  })
    .requiredOption("--to <host>", "the destination host")
    .option("--force", FORCE)
    .action(async (room_id: string, { to, force, json }: MoveOptions) => {
      const reply = await withProgress(`moving room ${room_id} to ${to}`, () =>
        call(roomMove, { room_id, host: to, force }),
      );
      await show(reply, { json }, (moved) => [
        moved.from === moved.to
          ? `room ${moved.room_id} is on ${moved.to} already`
          : `room ${moved.room_id} is on ${moved.to}: ${bytesText(moved.drive_bytes)}, unavailable for ${moved.away_ms} ms, ${counted(moved.sandboxes_ended.length, "sandbox", "sandboxes")} ended`,
      ]);
    });
}

export function evacuateCommand(): Command {
  return command("evacuate <host>", {
    summary: "move all rooms of a host to the others, one after another; new ones are placed elsewhere",
    notes: [
      "ROOMD_API_KEY must be the operator's key. Sandboxes move along if the other host can load them; otherwise they are ended. A room that cannot be moved stays, and the reason is printed.",
    ],
    examples: ["roomd cluster evacuate host-2", "roomd cluster evacuate host-2 --force"],
  })
    .option("--force", FORCE)
    .action(async (host: string, { force, json }: JsonOption & { force?: boolean }) => {
      const rooms = await withProgress(`moving the rooms of ${host}`, ({ say, giveWay }) =>
        evacuated({ host, force }, async (room, left) => {
          say(`moving the rooms of ${host}, ${left} left`);
          if (json) return;
          giveWay();
          await print(lineOf(room));
        }),
      );
      const stay = rooms.filter(({ to }) => to === null);
      await showValue({ host, rooms }, { json }, () => [
        `${counted(rooms.length - stay.length, "room", "rooms")} moved, ${counted(stay.length, "room", "rooms")} not`,
      ]);
      if (stay.length > 0)
        throw new CliError(`${counted(stay.length, "room stays", "rooms stay")} on ${host}.`, EXIT.refused);
    });
}

type Room = NonNullable<OutputOf<typeof hostEvacuate>["room"]>;

const lineOf = ({ room_id, org_id, to, problem }: Room): string =>
  to === null ? `${room_id} of ${org_id} stays: ${problem?.detail}` : `${room_id} of ${org_id} is on ${to}`;

/** Moves one room after another; a room that cannot be moved stays. */
async function evacuated(
  given: { host: string; force: boolean | undefined },
  each: (room: Room, left: number) => Promise<void>,
): Promise<Room[]> {
  const rooms: Room[] = [];
  for (;;) {
    const skip = rooms.flatMap(({ to, room_uid }) => (to === null ? [room_uid] : []));
    const { room, left } = (await call(hostEvacuate, { ...given, skip })).value;
    if (!room) return rooms;
    rooms.push(room);
    await each(room, left);
  }
}
