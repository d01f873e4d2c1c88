/** The `room_overview` call: a page of rooms, each with its agents, its blocked agents, and its cost. */
import { type RoomGlance, roomOverview } from "../../../shared/api/overview/room-overview.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { type Bound, bind, type Caller } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { inPieces, loopTime, ownerOf, Pieces, type Steps } from "../../core/loop/index.ts";
import { blockedIn } from "./blocked.ts";
import type { OverviewDeps, OverviewRoom } from "./deps.ts";

const ENDED = { agents: 0, running: 0, blocked: 0, in_circle: false, truncated: false, messages_last_minute: 0 };

export function makeRoomOverview(deps: OverviewDeps): Bound {
  return bind(roomOverview, {
    run: async ({ caller, signal }, input) => {
      const { org_id } = caller;
      const pieces = new Pieces(loopTime, ownerOf(org_id), roomOverview.name, { signal });
      await pieces.turn();
      const { rows, next_cursor } = deps.rooms.page(caller, input);
      const costOf = maySeeCost(caller) ? deps.costs(org_id) : () => null;
      const found: { row: OverviewRoom; driveUsed: Promise<number>; rest: Omit<RoomGlance, keyof OfRow> }[] = [];
      for (const listed of rows) {
        const turn = pieces.next();
        if (turn) await turn;
        // It may have ended since the page was read: nothing is remembered of it any more.
        const row = deps.rooms.current(listed.room_uid) ?? { ...listed, state: "destroyed" };
        const agents = await inPieces(inside(deps, caller, row), pieces);
        const rest = { ...agents, cost: costOf(row) };
        // Drives are measured concurrently; a drive that cannot be read does not fail the others.
        found.push({ row, driveUsed: deps.rooms.driveUsed(row).catch(() => 0), rest });
      }
      const used = await Promise.all(found.map(({ driveUsed }) => driveUsed));
      const items = found.map(({ row, rest }, index): RoomGlance => ({ ...ofRow(row, used[index] ?? 0), ...rest }));
      return { outcome: "ok", body: { org_id, at: now(), items, next_cursor } };
    },
  });
}

type OfRow = ReturnType<typeof ofRow>;

function ofRow(row: OverviewRoom, used_bytes: number) {
  const { room_id, room_uid, host_id: host, state, labels, drive_limit_bytes, created_at, expires_at } = row;
  const drive = { used_bytes, limit_bytes: drive_limit_bytes };
  return { room_id, room_uid, host, state, labels, drive, created_at, expires_at };
}

type Inside = Pick<RoomGlance, keyof typeof ENDED>;

/** A room that has ended, or is ending, has no working agents. */
function* inside(deps: OverviewDeps, caller: Caller, { room_uid, state }: OverviewRoom): Steps<Inside> {
  if (state !== "active") return ENDED;
  const messages_last_minute = deps.messagesLately(room_uid);
  return { ...workers(deps, room_uid), ...(yield* blockedIn(deps, caller, room_uid)), messages_last_minute };
}

function workers({ agents }: OverviewDeps, roomUid: RoomUid): Pick<RoomGlance, "agents" | "running"> {
  const sandboxes = agents.sandboxes(roomUid);
  const all = new Set([...agents.all(roomUid), ...sandboxes.map(({ agent_id }) => agent_id)]);
  return { agents: all.size, running: sandboxes.filter(({ state }) => state === "running").length };
}

const maySeeCost = ({ agent_id, scopes }: Caller): boolean =>
  agent_id === null && (scopes.includes("usage:read") || scopes.includes("org:admin"));
