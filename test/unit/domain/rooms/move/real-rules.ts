/** The rules of the model of a room's move, as the daemon's code carries them out: each in one situation, on a new database and data_dir. */
import { existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { claimRoom, refuseClaims } from "../../../../../daemon/cluster/claims.ts";
import type { Host, Owner as PlacedOwner } from "../../../../../daemon/cluster/directory.ts";
import { insertPlacement, placementOfRoom, putHost } from "../../../../../daemon/cluster/placements.ts";
import { compare, differences, type Sources } from "../../../../../daemon/cluster/self-sync.ts";
import { makePaths } from "../../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { type Steps, wholly } from "../../../../../daemon/core/loop/index.ts";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { insertOrg } from "../../../../../daemon/domain/orgs/store.ts";
import { writeState } from "../../../../../daemon/domain/rooms/checkpoints/room-state.ts";
import type { RoomDeps } from "../../../../../daemon/domain/rooms/deps.ts";
import {
  arrivedRooms,
  leavingRooms,
  misplacedRooms,
  placedWithoutRoom,
  unsettledRooms,
} from "../../../../../daemon/domain/rooms/index.ts";
import type { MoveDeps } from "../../../../../daemon/domain/rooms/move/deps.ts";
import { FORMAT, type RoomHeader } from "../../../../../daemon/domain/rooms/move/format.ts";
import { ReceivedRooms } from "../../../../../daemon/domain/rooms/move/receive.ts";
import { sendRoom, settleMove } from "../../../../../daemon/domain/rooms/move/send.ts";
import { UntrustedRooms } from "../../../../../daemon/domain/rooms/move/untrusted.ts";
import { makeOwnership } from "../../../../../daemon/domain/rooms/ownership.ts";
import { getRoom, insertRoom, updateRoom } from "../../../../../daemon/domain/rooms/store.ts";
import type { RoomRow } from "../../../../../daemon/domain/rooms/table.ts";
import type { KeyId, OrgId, RoomUid } from "../../../../../shared/ids.ts";
import { HOSTS, type HostId, type Move, type Owner, type Rules } from "./move-rules.ts";

const AT = "2026-01-01T00:00:00.000Z";
const ROOM = `rom_${"0".repeat(26)}` as RoomUid;
const ORG = "org_1" as OrgId;
const KEY = "kid_1" as KeyId;
const LOG = makeLog("error", () => {});
/** Aborts a function of the daemon at its decision. */
class Reached extends Error {}

const other = (host: HostId): HostId => (host === "host-1" ? "host-2" : "host-1");
const placed = (owner: Owner | null): PlacedOwner | null =>
  owner && { host_id: owner.host, epoch: owner.epoch, contested_by: owner.contestedBy };
const hostOf = (host_id: HostId, state: Host["state"] = "active"): Host => ({
  ...{ host_id, state, address: "a:1", certificate: "c", url: "http://a", labels: {}, joined_at: AT },
});

/** One host's database and data_dir. */
class Fixture implements AsyncDisposable {
  readonly home = mkdtempSync(join(tmpdir(), "roomd-rules-"));
  readonly paths = makePaths({ data_dir: this.home, runtime_dir: this.home });
  readonly #connection: Connection;
  readonly database: Database;
  readonly calls: string[] = [];

  /** `hasFile`: needed by readers of a database snapshot, which open the file again. */
  constructor({ hasFile = false } = {}) {
    this.#connection = openConnection(hasFile ? join(this.home, "roomd.db") : ":memory:");
    migrate(this.#connection);
    this.database = makeDatabase(this.#connection);
    insertOrg(this.queries, { org_id: ORG, name: "o", plan: "free", created_at: AT });
  }

  get queries() {
    return this.#connection.queries;
  }

  row(
    host: HostId,
    epoch: number,
    { move = null, state = "active" }: { move?: Move | null; state?: RoomRow["state"] } = {},
  ): RoomRow {
    insertRoom(this.queries, {
      ...{ room_uid: ROOM, room_id: "r", org_id: ORG, host_id: host, labels: {}, state, epoch },
      ...{ status_reason: "", status_message: "", last_transition_at: AT, created_at: AT, updated_at: AT },
      ...{ drive_limit_bytes: 1, drive_until_at: null, keep_drive: true, expires_at: null },
      ...{ created_by_type: "key", created_by_id: KEY, branching: move && branchingOf(move) },
    });
    return this.room();
  }

  room(): RoomRow {
    const row = getRoom(this.queries, ROOM);
    if (!row) throw new Error("the room has no row");
    return row;
  }

  place(owner: Owner | null): void {
    for (const host_id of HOSTS) putHost(this.queries, { ...hostOf(host_id), state: "active" });
    if (!owner) return;
    const { host, epoch, contestedBy } = owner;
    const room = { room_uid: ROOM, org_id: ORG, room_id: "r", labels: {}, created_at: AT };
    insertPlacement(this.queries, { ...room, host_id: host, epoch, contested_by: contestedBy });
  }

  owner(): Owner | null {
    const row = placementOfRoom(this.queries, ROOM);
    return row
      ? { host: row.host_id as HostId, epoch: row.epoch, contestedBy: row.contested_by as HostId | null }
      : null;
  }

  /** Stores a completely received room of the other host. */
  async arrived(host: HostId, epoch: number): Promise<void> {
    const place = this.paths.arriving(ROOM);
    for (const made of [this.paths.rooms, place.drive]) mkdirSync(made, { recursive: true });
    const state = { nouns: {}, calls: null, sandboxes: { carried: [] }, checkpoints: [] };
    await writeState(place.state, state);
    writeFileSync(place.whole, JSON.stringify(aboutOf(other(host), epoch)));
  }

  hasArriving = () => existsSync(this.paths.arriving(ROOM).directory);

  /** Dependencies of the functions of a move; each call that others could see is in `calls`. */
  deps(host: HostId, directory: Partial<RoomDeps["directory"]>, rest: object = {}): MoveDeps {
    const recorded = (name: string, work: (...given: never[]) => unknown = () => undefined) => {
      return (...given: never[]) => {
        this.calls.push(name);
        return work(...given);
      };
    };
    const follow = Object.entries(directory).map(([name, work]) => [
      name,
      ["host", "owner", "placed"].includes(name) ? work : recorded(name, work as never),
    ]);
    return {
      ...{ database: this.database, hostId: host, retentionSeconds: 60, paths: this.paths, log: LOG },
      ...{ directory: Object.fromEntries(follow), driveLimitEntries: 1, moveTally: { note: () => {} } },
      sandboxes: {
        ...{ evacuate: async () => [], forgetSnapshots: async () => {} },
        moves: {
          ...{
            stays: () => {},
            loaded: async () => [],
            leave: async () => ({ ended: [], carried: [] }),
            take: () => ({ carried: [] }),
          },
          place: async () => {
            throw new Reached("place");
          },
        },
      },
      ...{ fabric: { forget: async () => {} }, meter: { closes: () => {} }, calls: { untilDone: async () => {} } },
      ...{ audit: { anchor: () => {}, endRoom: () => {} }, pauses: { begin: () => {}, end: () => {} } },
      drive: {
        measure: async () => ({ used_bytes: 0, file_count: 0 }),
        holding: (_: RoomUid, work: () => Promise<unknown>) => work(),
        forget: () => {},
      },
      branch: {
        sandboxes: { requireBytes: async () => {}, use: (_: unknown, work: () => Promise<unknown>) => work() },
        nouns: Object.fromEntries(["agents", "fabric", "barriers"].map((name) => [name, NOUN])),
        calls: { takeRoom: takesNothing, putRoom: async () => {} },
      },
      ...{
        driveQuota: { end: () => {} },
        giveUpSpace: () => false,
        forgetCheckpoints: () => {},
        onGone: () => {},
        recoverPorts: () => {},
        onStays: () => {},
      },
      ownership: makeOwnership({
        hostId: host,
        directory: {
          host: () => null,
          isMember: () => true,
          isOthers: () => false,
          owner: () => null,
          ...directory,
        } as never,
      }),
      ...rest,
    } as unknown as MoveDeps;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    rmSync(this.home, { recursive: true });
  }
}

function branchingOf({ to, epoch, claiming }: Move) {
  return { kind: "move", to, epoch, key_id: KEY, ...(claiming && { claiming: true as const }) } as const;
}

function aboutOf(from: HostId, epoch: number): RoomHeader {
  const room = { room_uid: ROOM, room_id: "r", org_id: ORG, labels: {}, drive_limit_bytes: 1, expires_at: null };
  const made = { created_at: AT, updated_at: AT, created_by_type: "key", created_by_id: KEY, keep_drive: true };
  return { room: { ...room, ...made, former_ids: [] }, from, epoch, head: null, drive_bytes: 0, other_bytes: 0 };
}

const reaches = async (work: () => Promise<unknown>): Promise<boolean> => {
  try {
    await work();
    return false;
  } catch (error) {
    if (error instanceof Reached) return true;
    if (error instanceof ServiceError) return false;
    throw error;
  }
};
function* takesNothing(): Steps<null> {
  yield* [];
  return null;
}
const NOUN = { take: takesNothing, stage: async () => {}, drop: async () => {} };
const reached = (): never => {
  throw new Reached();
};

type Real = {
  [rule in Exclude<keyof Rules, "order" | "merge" | "mayAnswer" | "freed">]: (
    ...given: Parameters<Rules[rule]>
  ) => Promise<ReturnType<Rules[rule]>>;
};

export const REAL: Real = {
  mayLeave: async (epoch, owner, host) => {
    await using fixture = new Fixture();
    const row = fixture.row(host, epoch);
    const deps = fixture.deps(host, { owner: () => placed(owner) }, { drive: { measure: reached } });
    const how = { key_id: KEY, isCall: true, isForced: false };
    return await reaches(() => sendRoom(deps, row, hostOf(other(host)), new AbortController().signal, how));
  },

  mayCome: async (owner, from, epoch, isHere) => {
    await using fixture = new Fixture();
    const host = other(from);
    if (isHere) fixture.row(host, epoch);
    const directory = {
      trueOwner: async () => placed(owner),
      placed: () => ({ org_id: ORG, room_id: "r" }) as never,
    };
    const deps = fixture.deps(host, directory, { branch: { sandboxes: { requireBytes: reached } } });
    const file = (async function* () {
      yield Buffer.from(`${JSON.stringify({ roomd_room: FORMAT, about: aboutOf(from, epoch) })}\n`);
    })();
    return await reaches(() => new ReceivedRooms(deps, () => {}).receive(ROOM, file, new AbortController().signal));
  },

  claim: async (owner, host, epoch, to, isGone) => {
    await using fixture = new Fixture();
    fixture.place(owner);
    if (isGone) putHost(fixture.queries, { ...hostOf(to), state: "gone" });
    try {
      claimRoom(fixture.queries, ROOM, { from: host, epoch, to });
      return fixture.owner();
    } catch {
      return null;
    }
  },

  refuse: async (owner, epoch) => {
    await using fixture = new Fixture();
    fixture.place(owner);
    refuseClaims(fixture.queries, ROOM, epoch);
    return fixture.owner();
  },

  isOurs: async (owner, host, epoch) => {
    await using fixture = new Fixture();
    await fixture.arrived(host, epoch);
    const deps = fixture.deps(host, { trueOwner: async () => placed(owner), refuse: async () => {} });
    const isOurs = await reaches(() => new ReceivedRooms(deps, () => {}).settle(ROOM));
    const expected = isOurs ? ["trueOwner"] : ["trueOwner", "refuse", "trueOwner"];
    if (fixture.calls.join() !== expected.join()) throw new Error(`it called ${fixture.calls.join()}`);
    if (!isOurs && fixture.hasArriving()) throw new Error("what came is still there");
    return isOurs;
  },

  hasCome: async ({ state, epoch }, sent) => {
    await using fixture = new Fixture();
    // A host of any name: the sender no longer matters.
    fixture.row("host-2", epoch, { state });
    await fixture.arrived("host-2", sent);
    const deps = fixture.deps("host-2", { trueOwner: reached });
    const isAsked = await reaches(() => new ReceivedRooms(deps, () => {}).settle(ROOM));
    if (isAsked !== fixture.hasArriving()) throw new Error("what came is still there");
    return !isAsked;
  },

  giveUp: async (epoch, owner, host) => {
    await using fixture = new Fixture();
    fixture.row(host, epoch);
    fixture.place(owner);
    const settled = Promise.withResolvers<void>();
    const deps = fixture.deps(host, { owner: () => placed(owner) });
    const foreign = new UntrustedRooms(deps, async () => settled.resolve());
    await foreign.look();
    foreign.stop();
    const { branching } = fixture.room();
    if (branching?.kind !== "move") return null;
    await settled.promise;
    return { to: branching.to as HostId, epoch: branching.epoch, claiming: branching.claiming === true };
  },

  say: async (live, owner, host, isArriving) => {
    await using fixture = new Fixture();
    if (live) {
      const move: Move | null = live.isClaiming ? { to: other(host), epoch: live.epoch, claiming: true } : null;
      fixture.row(host, live.epoch, { move });
    }
    fixture.place(owner);
    const sources: Sources = {
      ...{ certificate: "c", load: reached, used: reached, allUsed: () => new Map() },
      ...{ unsettled: unsettledRooms, misplaced: misplacedRooms, placedWithoutRoom, arrived: arrivedRooms },
      ...{ arriving: () => new Set(isArriving ? [ROOM] : []), leaving: () => leavingRooms(fixture.queries) },
    };
    const { host_id, address, url, labels } = hostOf(host);
    const suspects = wholly(compare(fixture.queries, host_id, sources));
    const changes = differences(fixture.queries, { host_id, address, url, labels }, sources, suspects);
    for (const change of changes) change(fixture.queries);
    return changes.length === 0 ? undefined : fixture.owner();
  },

  isThere: async (replyEpoch, epoch) => {
    await using fixture = new Fixture();
    fixture.row("host-1", epoch, { move: { to: "host-2", epoch, claiming: true } });
    const directory = { host: () => hostOf("host-2"), trueOwner: reached };
    const peers = () => ({ settle: async () => ({ epoch: replyEpoch }) });
    const isUnknown = await reaches(() => settleMove(fixture.deps("host-1", directory, { peers }), ROOM));
    if (isUnknown !== (fixture.room().state === "active"))
      throw new Error("the room is gone, and its owner is not known");
    return !isUnknown;
  },

  asks: async (move) => {
    await using fixture = new Fixture();
    fixture.row(other(move.to), move.epoch, { move });
    const deps = fixture.deps(
      other(move.to),
      { host: () => hostOf(move.to), trueOwner: reached },
      {
        peers: () => ({
          settle: async () => {
            fixture.calls.push("settle");
            return { epoch: 0 };
          },
        }),
      },
    );
    await reaches(() => settleMove(deps, ROOM));
    return fixture.calls[0] === "settle";
  },

  settle: async ({ move, rowEpoch, host, said, owner, freedBy }) => {
    await using fixture = new Fixture();
    fixture.row(host, rowEpoch, { move });
    updateRoom(fixture.queries, ROOM, { epoch: rowEpoch });
    const freed = freedBy && { host_id: freedBy === "removal" ? "host-3" : freedBy, isRemoval: false };
    const deps = fixture.deps(
      host,
      {
        host: () => hostOf(move.to, said === null && move.claiming ? "gone" : "active"),
        trueOwner: async () => placed(owner),
        freedBy: async () => freed,
      },
      { peers: () => ({ settle: async () => ({ state: "not ours", epoch: said ?? 0 }) }) },
    );
    const isHere = await settleMove(deps, ROOM);
    const { state, epoch, branching } = fixture.room();
    if (isHere !== (state === "active") || branching !== null) throw new Error(`the room is ${state}`);
    return { isHere, epoch };
  },
};

/** Requests of sendRoom to others, each with the state of its row at that time. */
export async function orderOfDeparture(): Promise<string[]> {
  await using fixture = new Fixture({ hasFile: true });
  const row = fixture.row("host-1", 1);
  mkdirSync(fixture.paths.drive(ROOM), { recursive: true });
  const { calls } = fixture;
  const note = (name: string) => {
    const { state, branching } = fixture.room();
    const is =
      state !== "active" ? "retired" : branching?.kind !== "move" ? "free" : branching.claiming ? "claiming" : "noted";
    calls.push(`${is}: ${name}`);
  };
  const deps = fixture.deps(
    "host-1",
    { owner: () => ({ host_id: "host-1", epoch: 1 }) },
    {
      directory: {
        owner: () => ({ host_id: "host-1", epoch: 1 }),
        claim: async () => {
          note("claim");
          return { host_id: "host-2", epoch: 2 };
        },
      },
      peers: () => ({
        send: async (_: Host, __: RoomUid, file: AsyncIterable<Uint8Array>) => {
          note("send");
          await Array.fromAsync(file);
          return { head: null };
        },
        settle: async () => {
          note("ask");
          return { state: "arrived", epoch: 2 };
        },
      }),
    },
  );
  const how = { key_id: KEY, isCall: true, isForced: false };
  await sendRoom(deps, row, hostOf("host-2"), new AbortController().signal, how);
  note("done");
  return calls;
}
