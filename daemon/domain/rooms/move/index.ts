/** Moves of rooms between hosts: the call that requests one, and recovery from a crash on either host. */

import { Value } from "@sinclair/typebox/value";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { roomMove } from "../../../../shared/api/moves.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { noSuchHost } from "../../../cluster/choose-host.ts";
import type { Host } from "../../../cluster/directory.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { requireActive } from "../../../core/call/room-target.ts";
import { monotonicMs } from "../../../core/clock.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { type FitsAnswer, fitsAsked } from "../../sandboxes/index.ts";
import { requireWholeRoom } from "../checkpoints/fork.ts";
import type { Locks } from "../checkpoints/locks.ts";
import type { Arrived, Settled } from "../deps.ts";
import { getRoom, liveRooms } from "../store.ts";
import type { Moving, RoomRow } from "../table.ts";
import { toTarget } from "../target.ts";
import type { MoveDeps } from "./deps.ts";
import { makeEvacuate } from "./evacuate.ts";
import { ReceivedRooms } from "./receive.ts";
import { putDepartingAside, SETTLE_FAILED, sendRoom, settleMove } from "./send.ts";
import { UntrustedRooms } from "./untrusted.ts";

const AGAIN_MS = 2_000;

export interface Moves {
  operations: Bound[];
  /** Requests that other hosts send to this one. */
  forPeers: PeerCalls;
  /** Whether a room of this name has arrived and is not reachable yet. */
  isComing(orgId: OrgId, roomId: string): boolean;
  /** Resumes moves to and from this host that a previous daemon left unfinished. */
  recover(): Promise<void>;
  stop(): void;
}

export interface PeerCalls {
  receive(roomUid: RoomUid, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Arrived>;
  settle(roomUid: RoomUid): Promise<Settled>;
  /** Throws invalid_body. */
  fits(request: unknown): Promise<FitsAnswer>;
}

interface MoveParts {
  deps: MoveDeps;
  locks: Pick<Locks, "take" | "isHeld">;
  findRow(call: KeyCall, roomId: string): RoomRow;
  schedule(row: RoomRow): void;
}

export function makeMoves({ deps, locks, findRow, schedule }: MoveParts): Moves {
  const { database, paths, directory, hostId } = deps;
  const arrivals = new ReceivedRooms(deps, schedule);
  const due = new Deadlines((roomUid) => void goOn(roomUid as RoomUid));
  const later = (roomUid: RoomUid) => due.setIn(roomUid, AGAIN_MS);
  /** Settles a move that a call or a previous daemon left unfinished. Never rejects. */
  const goOn = async (roomUid: RoomUid) => {
    if (locks.isHeld(roomUid)) return later(roomUid);
    try {
      // A new move would make its copy where the settled one's is erased.
      await locks.take(roomUid, "moved", () => settleMove(deps, roomUid));
    } catch (error) {
      deps.log.warn(SETTLE_FAILED, { room_uid: roomUid, error: describeError(error) });
      later(roomUid);
    }
  };

  const foreign = new UntrustedRooms(deps, goOn);

  const move = async (row: RoomRow, to: Host, force: boolean, by: { key_id: Moving["key_id"]; isCall: boolean }) => {
    const { room_id, room_uid } = row;
    requireMade(row);
    const since = monotonicMs();
    try {
      const moved = await locks.take(room_uid, "moved", (over) =>
        sendRoom(deps, row, to, over, { ...by, isForced: force }),
      );
      deps.moveTally.note(true, since);
      return { room_id, room_uid, from: hostId, to: to.host_id, ...moved } satisfies OutputOf<typeof roomMove>;
    } catch (error) {
      deps.moveTally.note(false, since);
      throw error;
    } finally {
      if (getRoom(database.queries, room_uid)?.branching?.kind === "move") later(room_uid);
    }
  };

  const operation = bind(roomMove, {
    find: (call, params) => {
      const row = findRow(call, String(params.room_id));
      call.audit.room_id = row.room_id;
      call.audit.room_uid = row.room_uid;
      return row;
    },
    run: async (call, { host, force = false }, row) => {
      requireWholeRoom(call);
      requireActive(toTarget(row, paths));
      if (host === hostId)
        return { outcome: "ok", body: itself(row, hostId, directory.owner(row.room_uid)?.epoch ?? 1) };
      const body = await move(row, requireGoal(directory.host(host), host), force, {
        key_id: call.caller.key_id,
        isCall: true,
      });
      const { from, to, epoch, sandboxes_ended, lost, away_ms } = body;
      call.audit.details = { from, to, epoch, sandboxes_ended, away_ms, ...lost };
      return { outcome: "ok", body };
    },
  });

  return {
    operations: [
      operation,
      makeEvacuate(deps, (row, to, force, key_id) =>
        move(row, requireGoal(directory.host(to), to), force, { key_id, isCall: false }),
      ),
    ],
    forPeers: {
      receive: (roomUid, source, signal) => arrivals.receive(roomUid, source, signal),
      settle: (roomUid) => arrivals.settle(roomUid),
      fits: (request) => {
        if (Value.Check(fitsAsked, request)) return deps.sandboxes.moves.fits(request);
        throw new ServiceError("invalid_body", { detail: "Malformed request from another host." });
      },
    },
    isComing: (org_id, room_id) => arrivals.has({ org_id, room_id }),
    recover: async () => {
      directory.onChange(() => {
        arrivals.look();
        foreign.lookSoon();
      });
      await arrivals.recover();
      for (const row of liveRooms(database.queries)) {
        if (row.branching?.kind === "move") {
          void goOn(row.room_uid);
          continue;
        }
        await putDepartingAside(deps, row.room_uid);
      }
      await foreign.look();
    },
    stop: () => {
      arrivals.stop();
      foreign.stop();
      due.clear();
    },
  };
}

/** Throws not_ready: a fork or restore of the room has to be finished first. */
function requireMade({ room_id, branching }: RoomRow): void {
  if (branching === null) return;
  throw new ServiceError("not_ready", {
    detail: `Room ${room_id} is currently being created from a checkpoint, or restored to one.`,
    hint: "Retry once that is done.",
    retryAfterSeconds: 2,
  });
}

/** The result if the room is already on the requested host. */
function itself({ room_id, room_uid }: RoomRow, host: string, epoch: number): OutputOf<typeof roomMove> {
  const lost = { snapshots: 0, checkpoints: 0, recordings: 0 };
  return { room_id, room_uid, from: host, to: host, epoch, drive_bytes: 0, sandboxes_ended: [], lost, away_ms: 0 };
}

function requireGoal(host: Host | null, name: string): Host {
  if (!host || host.state === "gone") throw noSuchHost();
  if (host.state !== "unreachable" && host.state !== "draining") return host;
  if (host.state === "unreachable") {
    throw new ServiceError("host_unreachable", { detail: `${name}: its lease has expired.` });
  }
  throw new ServiceError("insufficient_capacity", {
    detail: `No room can be placed on ${name} (${host.state}) at present.`,
  });
}
