/**
 * Rooms that arrive from other hosts:
 *
 *     the file is read into a directory of its own → the drive is made from it → its rows are tried in a dry run
 *     ⇒ `room.json`: the arrival is complete
 *       └ the cluster directory places it on this host ⇒ its directory and those of its sandboxes are moved into place
 *         → one commit: its rows ⇒ the directory of the arrival is removed, its sandboxes are resumed
 *       └ it does not, and no longer can ⇒ the arrival is removed
 *
 * The cluster directory alone decides a room's owner, so after a crash the owner is looked up, and the arrival is continued or removed.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { mkdir, open, rename, rm } from "node:fs/promises";
import { MAX_CHECKPOINTS } from "../../../../shared/api/checkpoints.ts";
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { monotonicMs, now } from "../../../core/clock.ts";
import { Deadlines } from "../../../core/concurrency/deadlines.ts";
import type { Paths } from "../../../core/config/paths.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, errnoOf, ServiceError } from "../../../core/service-error.ts";
import type { Staging } from "../../../db/branch.ts";
import { newRows, type RowsKey, rowsOf } from "../../../db/room-rows.ts";
import { violatesUnique } from "../../../db/transact.ts";
import { syncDirectory } from "../../../host/files/async-calls.ts";
import { eraseDirectory } from "../../../host/files/erase.ts";
import { namesIn } from "../../../host/files/gone.ts";
import { markDrive } from "../../../host/isolation/directories.ts";
import { headToName } from "../../audit/index.ts";
import type { Putting } from "../../sandboxes/index.ts";
import { templateFiles } from "../../templates/files.ts";
import { copying } from "../checkpoints/copying.ts";
import { dropNouns, readState, stageNouns, wakeNouns } from "../checkpoints/room-state.ts";
import type { Arrived, RoomDeps, Settled } from "../deps.ts";
import { getRoom } from "../store.ts";
import type { RoomRow } from "../table.ts";
import { NotWhole, type RoomHeader } from "./format.ts";
import { branchedOf, giveRows, type MovedState } from "./rows.ts";
import { MEMBERS } from "./timeouts.ts";
import { RoomReader } from "./unpack.ts";

/** By how much guests may exceed the drive's limits before they are stopped. */
const BEYOND = { bytes: 64 * 1024 ** 2, entries: 10_000 };
/** Limit of the database state, and of the list of a drive's entries. */
const MAX_ROWS_BYTES = 4 * 1024 ** 3;
/** After this time no host is still about to claim it. */
const FORGOTTEN_MS = 10 * 60_000;
const AGAIN_MS = 5_000;
/** How long a guest that cannot be placed here is retried, while the room is unreachable; then its sandbox is ended. */
const GUESTS_MS = 30_000;
const NONE_GIVEN_UP: Putting = { givenUp: new Set() };

/** Rooms that have arrived and have no rows yet. */
export function arrivingRooms({ arrivals }: Pick<Paths, "arrivals">): ReadonlySet<string> {
  try {
    return new Set(readdirSync(arrivals));
  } catch {
    return new Set();
  }
}

export class ReceivedRooms {
  readonly #deps: RoomDeps;
  readonly #onArrived: (row: RoomRow) => void;
  /** Rooms that are being read or settled, whichever started first. */
  readonly #underWay = new Map<string, Promise<unknown>>();
  /** Time of the first failure to place a room's guests, by the monotonic clock. */
  readonly #lacking = new Map<RoomUid, number>();
  /** Keys of their staged rows, which are lost with this daemon: the next stages them again. */
  readonly #staged = new Map<RoomUid, RowsKey>();
  readonly #due = new Deadlines((roomUid) => void this.#settleLater(roomUid as RoomUid));

  constructor(deps: RoomDeps, onArrived: (row: RoomRow) => void) {
    this.#deps = deps;
    this.#onArrived = onArrived;
  }

  /** Receives a room's file; resolves once only the ownership is missing. Throws invalid_state, quota_exceeded, disk_full. */
  async receive(roomUid: RoomUid, source: AsyncIterable<Uint8Array>, signal: AbortSignal): Promise<Arrived> {
    if (this.#underWay.has(roomUid)) throw busy();
    return await this.#alone(roomUid, async () => {
      // Only an attempt that has started to replace an earlier arrival may remove it.
      const started = { is: false };
      try {
        const about = await this.#read(roomUid, source, signal, started);
        this.#due.setIn(roomUid, FORGOTTEN_MS);
        return { head: await headToName(this.#deps.database, about.room.org_id) };
      } catch (error) {
        if (started.is) await this.#throwAway(roomUid);
        throw meant(error);
      }
    });
  }

  /** Determines the owner of a room that has arrived, and completes or removes the arrival. */
  async settle(roomUid: RoomUid): Promise<Settled> {
    for (let busy = this.#underWay.get(roomUid); busy; busy = this.#underWay.get(roomUid)) await busy;
    const state = await this.#alone(roomUid, () => this.#settleNow(roomUid));
    return { state, epoch: getRoom(this.#deps.database.queries, roomUid)?.epoch ?? 0 };
  }

  /** Leftovers of a previous daemon. Resolves once all that can be settled are. */
  async recover(): Promise<void> {
    for (const roomUid of arrivingRooms(this.#deps.paths)) await this.#settleLater(roomUid as RoomUid);
  }

  /** The shared rows have changed: rooms that this host owns now are taken up. */
  look(): void {
    const { directory, paths, hostId } = this.#deps;
    for (const roomUid of arrivingRooms(paths)) {
      const isOurs = directory.owner(roomUid as RoomUid)?.host_id === hostId;
      if (isOurs && !this.#underWay.has(roomUid)) void this.#settleLater(roomUid as RoomUid);
    }
  }

  /** Whether a room of this name has arrived here and is not reachable yet. */
  has({ org_id, room_id }: Pick<RoomRow, "org_id" | "room_id">): boolean {
    for (const roomUid of arrivingRooms(this.#deps.paths)) {
      const about = this.#aboutOf(roomUid as RoomUid);
      if (about?.room.org_id === org_id && about.room.room_id === room_id) return true;
    }
    return false;
  }

  stop(): void {
    this.#due.clear();
  }

  async #alone<T>(roomUid: RoomUid, work: () => Promise<T>): Promise<T> {
    const done = work();
    const over = done
      .catch(() => {})
      .finally(() => {
        if (this.#underWay.get(roomUid) === over) this.#underWay.delete(roomUid);
      });
    this.#underWay.set(roomUid, over);
    return await done;
  }

  async #settleLater(roomUid: RoomUid): Promise<void> {
    try {
      await this.settle(roomUid);
    } catch (error) {
      this.#deps.log.error("failed to settle a room that arrived; will retry", {
        room_uid: roomUid,
        error: describeError(error),
      });
      this.#due.setIn(roomUid, AGAIN_MS);
    }
  }

  async #read(
    roomUid: RoomUid,
    source: AsyncIterable<Uint8Array>,
    signal: AbortSignal,
    started: { is: boolean },
  ): Promise<RoomHeader> {
    const deps = this.#deps;
    const { paths, directory, database } = deps;
    const place = paths.arriving(roomUid);
    const reader = new RoomReader(source, MEMBERS);
    const about = await reader.about();
    const owner = await directory.trueOwner(roomUid);
    const isItsOwn = owner?.host_id === about.from && owner.epoch === about.epoch && about.room.room_uid === roomUid;
    const { org_id, room_id } = about.room;
    const placed = directory.placed(roomUid);
    const isNamedSo = placed?.org_id === org_id && placed.room_id === room_id;
    if (
      !isItsOwn ||
      !isNamedSo ||
      about.from === deps.hostId ||
      getRoom(database.queries, roomUid)?.state === "active"
    ) {
      throw new ServiceError("invalid_state", {
        detail: `Room ${about.room.room_id} is not owned by the sending host.`,
      });
    }
    const { drive_bytes, other_bytes } = about;
    const bytes = drive_bytes + other_bytes;
    // The bytes already count for the organization, on the sending host.
    const orgOwner = { org_id: about.room.org_id as OrgId };
    await deps.branch.sandboxes.requireBytes(orgOwner, { added: bytes, freed: bytes });
    started.is = true;
    await this.#dropStaged(roomUid);
    await eraseDirectory(place.directory, deps.giveUpSpace);
    for (const made of [paths.arrivals, place.directory, place.room])
      await mkdir(made, { recursive: true, mode: 0o700 });
    await mkdir(place.drive, { mode: 0o1777 });
    await markDrive(place.drive, deps.driveRoot(roomUid));
    const limits = { bytes: about.room.drive_limit_bytes, inodes: deps.driveLimitEntries };
    const templates = await templateFiles(paths);
    const { store, state, room, sandboxes } = place;
    // Each checkpoint may have as many files as the drive.
    const files = (limits.inodes + BEYOND.entries) * (MAX_CHECKPOINTS + 1);
    await reader.unpack(
      { store, state, room, sandboxes, templates },
      { bytes: limits.bytes + BEYOND.bytes + MAX_ROWS_BYTES + other_bytes, files },
    );
    deps.driveQuota.begin(place.drive, roomUid, {
      ...limits,
      bytes: Math.max(limits.bytes, about.drive_bytes),
    });
    const { drive, links } = place;
    await copying(signal, (copier) => copier.restore({ store, drive, links, root: deps.driveRoot(roomUid) }));
    await eraseDirectory(store, deps.giveUpSpace);
    await this.#tryRows(about, signal);
    await faultPoint("move.received");
    await writeWhole(place.whole, about);
    for (const made of [place.room, place.directory, paths.arrivals, paths.data]) await syncDirectory(made);
    await faultPoint("move.ready");
    return about;
  }

  /** Detects errors of its rows before the sender relies on them. */
  async #tryRows(about: RoomHeader, signal: AbortSignal): Promise<void> {
    const { database, paths } = this.#deps;
    const place = paths.arriving(about.room.room_uid);
    const state = await readState<MovedState>(place.state);
    const carried = new Set<string>(state.sandboxes.carried.map(({ sandbox_id }) => sandbox_id));
    const stranger = (await namesIn(place.sandboxes)).find((name) => !carried.has(name));
    if (stranger !== undefined) throw new NotWhole("it has files of a sandbox that it does not list");
    // Space is checked only here: once this host owns it, it is accepted even if other messages have taken the space since.
    const rows = await this.#stage(about, state, { over: signal, requiresSpace: true });
    const [tried] = database.rehearse(
      [(queries) => giveRows(this.#deps, queries, about, state, { ...NONE_GIVEN_UP, rows })],
      () => {},
    );
    if (!tried || !("error" in tried)) return;
    throw violatesUnique(tried.error, "rooms.room_id") ? nameTaken(about.room.room_id) : tried.error;
  }

  /** Stages the rows of its nouns if they are not; returns their key. */
  async #stage({ room }: RoomHeader, { nouns, calls }: MovedState, how: Omit<Staging, "isOther">): Promise<RowsKey> {
    const room_uid = room.room_uid as RoomUid;
    const known = this.#staged.get(room_uid);
    if (known) return known;
    const rows = newRows(room_uid);
    const row = room as unknown as RoomRow;
    const { branch } = this.#deps;
    // If the room does not arrive, its calls stay here for their day, as those of a room that has left.
    await branch.calls.putRoom(calls, row, how.over);
    await stageNouns(branch.nouns, nouns, branchedOf(row, rows), { ...how, isOther: false });
    this.#staged.set(room_uid, rows);
    await faultPoint("move.staged");
    return rows;
  }

  async #dropStaged(roomUid: RoomUid): Promise<void> {
    const rows = this.#staged.get(roomUid);
    this.#staged.delete(roomUid);
    if (rows) await dropNouns(this.#deps.branch.nouns, rows);
  }

  #aboutOf(roomUid: RoomUid): RoomHeader | null {
    const { whole } = this.#deps.paths.arriving(roomUid);
    return existsSync(whole) ? (JSON.parse(readFileSync(whole, "utf8")) as RoomHeader) : null;
  }

  async #settleNow(roomUid: RoomUid): Promise<"arrived" | "not ours"> {
    const { directory, hostId, database } = this.#deps;
    const about = this.#aboutOf(roomUid);
    const row = getRoom(database.queries, roomUid);
    if (!about) {
      await this.#throwAway(roomUid);
      return row?.state === "active" ? "arrived" : "not ours";
    }
    // Files of an arrival that could not be erased may outlive the room created from them.
    if (row && (row.state === "active" || row.epoch > about.epoch)) {
      await this.#dropStaged(roomUid);
      await this.#removeRemains(roomUid);
      return "arrived";
    }
    // The local replica may be stale: a host that was removed from the cluster in the meantime must not take up rooms.
    const isOurs = async () => {
      const owner = await directory.trueOwner(roomUid);
      return owner?.host_id === hostId && owner.epoch === about.epoch + 1;
    };
    if (!(await isOurs())) {
      // After this, no host can claim it for this one any more.
      await directory.refuse(roomUid, about.epoch);
      if (!(await isOurs())) {
        await this.#throwAway(roomUid);
        return "not ours";
      }
    }
    await this.#takeUp(roomUid, about);
    return "arrived";
  }

  async #takeUp(roomUid: RoomUid, about: RoomHeader): Promise<void> {
    const { paths, database, branch, log, pauses } = this.#deps;
    const place = paths.arriving(roomUid);
    const state = await readState<MovedState>(place.state);
    if (existsSync(place.room)) {
      // The room may have been on this host before.
      await eraseDirectory(paths.retired_room(roomUid), this.#deps.giveUpSpace);
      await eraseDirectory(paths.room(roomUid), this.#deps.giveUpSpace);
      await rename(place.room, paths.room(roomUid));
      for (const changed of [paths.rooms, place.directory]) await syncDirectory(changed);
    }
    const rows = await this.#stage(about, state, { over: new AbortController().signal, requiresSpace: false });
    const former = rowsOf(database.queries, roomUid);
    const row = await this.#withGuests(roomUid, async (isLastTry) => {
      const failed = await this.#deps.sandboxes.moves.place(place.sandboxes);
      const [[, error] = []] = failed;
      if (failed.size > 0 && !isLastTry) {
        const detail = "Guests that arrived with the room cannot be placed on this host yet.";
        throw new ServiceError("not_ready", { detail, cause: error });
      }
      for (const [sandbox_id, why] of failed)
        log.error("failed to place a sandbox that arrived with its room; it ends", {
          sandbox_id,
          error: describeError(why),
        });
      await faultPoint("move.placed");
      const putting = { givenUp: new Set<string>(failed.keys()), rows };
      return await database.commit((queries) => {
        // In the transaction, not after it: this drops the drive's state from an earlier stay of the room on this host, and later writers
        // belong to the new stay.
        this.#deps.drive.forget(roomUid);
        return giveRows(this.#deps, queries, about, state, putting);
      });
    });
    this.#staged.delete(roomUid);
    this.#deps.audit.anchor();
    await faultPoint("move.arrived");
    await this.#removeRemains(roomUid);
    this.#due.set(roomUid, null);
    pauses.end(roomUid);
    this.#onArrived(row);
    this.#deps.sandboxes.moves.came(roomUid);
    this.#deps.recoverPorts();
    log.info("room arrived from another host", { room_uid: roomUid, from: about.from, at: now() });
    await wakeNouns(branch.nouns, branchedOf(row, rows)).catch((error: unknown) =>
      log.error("failed to wake waits in a room", { room_uid: roomUid, error: describeError(error) }),
    );
    // Removes the nouns' state of this room from its earlier stay on this host.
    await dropNouns(branch.nouns, former);
  }

  /** Retries guests that cannot be placed for a limited time; they do not delay their room longer. */
  async #withGuests<T>(roomUid: RoomUid, work: (isLastTry: boolean) => Promise<T>): Promise<T> {
    const since = this.#lacking.get(roomUid);
    try {
      const done = await work(since !== undefined && monotonicMs() - since > GUESTS_MS);
      this.#lacking.delete(roomUid);
      return done;
    } catch (error) {
      if (since === undefined) this.#lacking.set(roomUid, monotonicMs());
      throw error;
    }
  }

  async #throwAway(roomUid: RoomUid): Promise<void> {
    const { paths, driveQuota } = this.#deps;
    const place = paths.arriving(roomUid);
    this.#due.set(roomUid, null);
    this.#lacking.delete(roomUid);
    // From here on the arrival does not count as complete.
    await rm(place.whole, { force: true });
    await this.#dropStaged(roomUid);
    if (existsSync(place.drive)) driveQuota.end(place.drive);
    await eraseDirectory(place.directory, this.#deps.giveUpSpace);
  }

  async #removeRemains(roomUid: RoomUid): Promise<void> {
    const { paths } = this.#deps;
    await eraseDirectory(paths.arriving(roomUid).directory, this.#deps.giveUpSpace);
  }
}

async function writeWhole(path: string, about: RoomHeader): Promise<void> {
  const temporary = `${path}.new`;
  const file = await open(temporary, "w", 0o600);
  try {
    await file.write(JSON.stringify(about));
    await file.sync();
  } finally {
    await file.close();
  }
  await rename(temporary, path);
}

/**
 * The name belongs to a room that the cluster directory does not list under it: the directory lost it, or this host was reset to an earlier
 * state.
 */
function nameTaken(room_id: string): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `The other host already has a room ${room_id}, although the directory assigns the name to the room being moved.`,
  });
}

function busy(): ServiceError {
  return new ServiceError("invalid_state", {
    detail: "The room is currently moving to this host.",
    hint: "Retry once that is done.",
    retryAfterSeconds: 5,
  });
}

function meant(error: unknown): unknown {
  if (errnoOf(error) === "ENOSPC") return new ServiceError("disk_full", { cause: error });
  if (!(error instanceof NotWhole)) return error;
  return new ServiceError("invalid_state", { detail: `The room did not arrive: ${error.message}.`, cause: error });
}
