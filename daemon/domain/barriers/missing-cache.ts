/**
 * Participants that waiting generations still lack, shared by the calls at a barrier: every wait that starts in the room is checked for
 * cycles through all others, and a barrier has up to a thousand names.
 */
import type { RoomUid } from "../../../shared/ids.ts";
import type { Database } from "../../db/transact.ts";
import { missingOf } from "./state.ts";
import { findBarrier, waitingVersion } from "./store.ts";

interface KnownMissing {
  calls: number;
  generation: number;
  /** Null: to be read. */
  version: number | null;
  missing: readonly string[];
}

export class MissingParticipants {
  readonly #database: Pick<Database, "queries" | "undo">;
  readonly #barriers = new Map<string, KnownMissing>();

  constructor(database: Pick<Database, "queries" | "undo">) {
    this.#database = database;
  }

  /** Registers a call at a barrier; the returned function unregisters it. */
  hold(roomUid: RoomUid, barrierId: string): () => void {
    const key = keyOf(roomUid, barrierId);
    const known = this.#barriers.get(key) ?? { calls: 0, generation: 0, version: null, missing: [] };
    this.#barriers.set(key, known);
    known.calls++;
    return () => {
      if (--known.calls === 0) this.#barriers.delete(key);
    };
  }

  /** Empty once the generation is over, or if the barrier needs only a part of its participants. */
  of(roomUid: RoomUid, barrierId: string, generation: number): readonly string[] {
    const { queries, undo } = this.#database;
    const version = waitingVersion(queries, roomUid, barrierId, generation);
    if (version === null) return [];
    const known = this.#barriers.get(keyOf(roomUid, barrierId));
    if (known?.generation === generation && known.version === version) return known.missing;
    const row = findBarrier(queries, roomUid, barrierId, generation);
    const missing = row && row.parties === row.participants?.length ? missingOf(row) : [];
    if (!known) return missing;
    Object.assign(known, { generation, version, missing });
    // Another arrival may have a name as long as that of an arrival that is rolled back.
    undo(() => {
      known.version = null;
    });
    return missing;
  }

  /** The room's barriers were replaced. */
  forget(roomUid: RoomUid): void {
    for (const [key, known] of this.#barriers) if (key.startsWith(`${roomUid} `)) known.version = null;
  }
}

const keyOf = (roomUid: RoomUid, barrierId: string) => `${roomUid} ${barrierId}`;
