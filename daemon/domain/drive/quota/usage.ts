/**
 * Usage per room, and per organization the total of all its drives. The drive of a room that has ended counts as long as it is retained.
 */
import type { OrgId } from "../../../../shared/ids.ts";
import { inPieces, loopTime, ownerOf, Pieces, type Steps } from "../../../core/loop/index.ts";
import type { OrgDeps, UsageRoom } from "../deps.ts";
import { measureTree } from "./measure.ts";
import { OrgUsage } from "./org-usage.ts";
import { RoomUsage, type RoomUsageDeps } from "./room-quota.ts";

type Deps = OrgDeps & RoomUsageDeps;

const piecesOf = (orgId: OrgId, signal?: AbortSignal) =>
  new Pieces(loopTime, ownerOf(orgId), "room.drive", signal && { signal });

export class Usage {
  readonly #rooms = new Map<string, RoomUsage>();
  readonly #orgs = new Map<OrgId, OrgUsage>();
  /** Drives retained after their room's end: the organization, and the controller that aborts their measure. */
  readonly #kept = new Map<string, { org: OrgUsage; end: AbortController }>();
  readonly #deps: Deps;

  constructor(deps: Deps) {
    this.#deps = deps;
  }

  of(room: UsageRoom): RoomUsage {
    const known = this.#rooms.get(room.room_uid);
    if (known) return known;
    const org = this.ofOrg(room.org_id);
    const usage = new RoomUsage(room, this.#deps, org);
    this.#rooms.set(room.room_uid, usage);
    org.join(usage);
    return usage;
  }

  ofOrg(orgId: OrgId): OrgUsage {
    const gather = () => inPieces(this.#gather(orgId), piecesOf(orgId));
    const known = this.#orgs.get(orgId) ?? new OrgUsage(orgId, this.#deps, gather);
    this.#orgs.set(orgId, known);
    return known;
  }

  /** Adds an organization's drives from before this daemon's start. */
  *#gather(orgId: OrgId): Steps<void> {
    for (const page of this.#deps.roomsOf(orgId)) {
      for (const room of page) this.of(room);
      yield;
    }
    for (const page of this.#deps.keptOf(orgId)) {
      for (const room of page) if (!this.#kept.has(room.room_uid)) this.keep(room);
      yield;
    }
  }

  /** Total bytes of the organization's drives: rooms have current measures. */
  async measureOrg(orgId: OrgId): Promise<number> {
    const pieces = piecesOf(orgId);
    const measures: Promise<unknown>[] = [];
    for (const page of this.#deps.roomsOf(orgId)) {
      const measure = Promise.all(page.map((room) => this.of(room).current()));
      // A rejection before the last page is thrown below.
      measure.catch(() => {});
      measures.push(measure);
      const turn = pieces.next();
      if (turn) await turn;
    }
    await Promise.all(measures);
    const org = this.ofOrg(orgId);
    await org.known();
    return org.used;
  }

  /** The room has ended; `drive_directory` is the drive's location from now on. */
  keep({ room_uid, org_id, drive_directory }: UsageRoom): void {
    const lastBytes = this.#rooms.get(room_uid)?.knownBytes ?? null;
    const left = Promise.withResolvers<void>();
    this.#drop(room_uid, left.resolve);
    const kept = { org: this.ofOrg(org_id), end: new AbortController() };
    this.#kept.set(room_uid, kept);
    const pieces = piecesOf(org_id, kept.end.signal);
    const measure = async () => {
      const use = this.#deps.kernelUse(drive_directory);
      return use ? use.bytes : (await measureTree(drive_directory, { pieces })).used_bytes;
    };
    kept.org.keep(room_uid, lastBytes, measure);
    // Files that were being written were on it until they were removed.
    void left.promise.then(() => kept.org.measureKept(room_uid, measure));
  }

  forget(roomUid: string): void {
    this.#drop(roomUid, () => {});
  }

  #drop(roomUid: string, onLeft: () => void): void {
    const usage = this.#rooms.get(roomUid);
    usage?.end(onLeft);
    usage?.org.leave(usage);
    this.#rooms.delete(roomUid);
    const kept = this.#kept.get(roomUid);
    kept?.end.abort();
    kept?.org.drop(roomUid);
    this.#kept.delete(roomUid);
  }
}
