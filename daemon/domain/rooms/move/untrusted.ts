/**
 * Rooms on this host that the cluster directory places on another. A room with a newer epoch there is abandoned here: its row gets a move,
 * and settling the move retires it. A room with the same epoch stays as it is, and its waits end; ownership.ts refuses its calls.
 */
import type { KeyId, RoomUid } from "../../../../shared/ids.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import { within } from "../../../core/concurrency/published.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import { getRoom, roomsOfOthers, updateRoom } from "../store.ts";
import type { Moving } from "../table.ts";
import type { MoveDeps } from "./deps.ts";

/** Debounce: changes that follow each other are examined together; until then each call is refused by its own check. */
const LOOK_MS = 250;
/** Of one look. */
const MAX_ROOMS = 1_000;
/** Time for calls that found the room before another host was known to own it. */
const CALLS_MS = 5_000;

type Deps = Pick<MoveDeps, "database" | "directory" | "ownership" | "hostId" | "pauses" | "audit" | "calls" | "log">;

export class UntrustedRooms {
  readonly #deps: Deps;
  readonly #settle: (roomUid: RoomUid) => Promise<void>;
  readonly #givenUp = new Set<RoomUid>();
  readonly #contested = new Set<RoomUid>();
  #timer: Timer | null = null;

  /** `settle` determines the owner of a room that moves. Never rejects. */
  constructor(deps: Deps, settle: (roomUid: RoomUid) => Promise<void>) {
    this.#deps = deps;
    this.#settle = settle;
    deps.ownership.onElsewhere(({ room_uid }) => void this.#giveUp(room_uid));
  }

  lookSoon(): void {
    this.#timer ??= startTimer(() => {
      this.#timer = null;
      void this.look();
    }, LOOK_MS);
  }

  /** Examines such rooms; resolves once the state of each is in its row. Never rejects. */
  async look(): Promise<void> {
    const { database, hostId, ownership } = this.#deps;
    const rows = roomsOfOthers(database.queries, hostId, MAX_ROOMS);
    const contested = rows.filter((row) => ownership.standing(row) === "contested");
    this.#noteContested(contested);
    const elsewhere = rows.filter((row) => ownership.standing(row) === "elsewhere");
    for (const { room_uid } of elsewhere) await this.#giveUp(room_uid);
    if (rows.length === MAX_ROOMS && elsewhere.length > 0) this.lookSoon();
  }

  stop(): void {
    stopTimer(this.#timer);
  }

  #noteContested(rows: readonly { room_uid: RoomUid; room_id: string; epoch: number }[]): void {
    const { log, pauses } = this.#deps;
    const now = new Set(rows.map(({ room_uid }) => room_uid));
    for (const roomUid of this.#contested) {
      if (now.has(roomUid)) continue;
      this.#contested.delete(roomUid);
      pauses.end(roomUid);
    }
    for (const { room_uid, room_id, epoch } of rows) {
      if (this.#contested.has(room_uid)) continue;
      this.#contested.add(room_uid);
      log.error("a room is on two hosts in the same epoch", { room_uid, epoch });
      pauses.begin(room_uid, new ServiceError("invalid_state", { detail: `Room ${room_id} is on two hosts.` }));
    }
  }

  async #giveUp(roomUid: RoomUid): Promise<void> {
    const { database, directory, hostId, pauses, audit, calls, log } = this.#deps;
    if (this.#givenUp.has(roomUid)) return;
    this.#givenUp.add(roomUid);
    try {
      const owner = directory.owner(roomUid);
      const row = await database.commit((queries) => {
        const row = getRoom(queries, roomUid);
        if (row?.state !== "active" || row.branching?.kind === "move" || owner === null) return null;
        if (owner.host_id === hostId || owner.epoch <= row.epoch) return null;
        const { host_id: to, epoch } = owner;
        const branching: Moving = { kind: "move", to, epoch, key_id: row.created_by_id as KeyId };
        updateRoom(queries, roomUid, { branching });
        return row;
      });
      if (!row || !owner) return;
      log.error("a room is owned by another host", { room_uid: roomUid, host: owner.host_id, epoch: owner.epoch });
      pauses.begin(roomUid, new ServiceError("room_moving"));
      audit.endRoom(roomUid);
      void within(calls.untilDone(row, 0), CALLS_MS, "calls about the room")
        .catch(() => {})
        .then(() => this.#settle(roomUid));
    } catch (error) {
      log.error("failed to retire a room that is owned by another host", {
        room_uid: roomUid,
        error: describeError(error),
      });
    } finally {
      this.#givenUp.delete(roomUid);
    }
  }
}
