/** Dependencies of the rooms of a simulated daemon: the real directory and database, messages as their only noun, no guests, empty drives. */
import { eq } from "drizzle-orm";
import type { Cluster } from "../../../daemon/cluster/postgres.ts";
import { CallStats } from "../../../daemon/core/call/call-stats.ts";
import type { InFlightCalls } from "../../../daemon/core/call/in-flight-calls.ts";
import type { Paths } from "../../../daemon/core/config/paths.ts";
import type { Log } from "../../../daemon/core/log.ts";
import type { Steps } from "../../../daemon/core/loop/index.ts";
import type { ServiceError } from "../../../daemon/core/service-error.ts";
import { type Branch, type Rows, stageRows, straysIn, takeRows } from "../../../daemon/db/branch.ts";
import { forgetRows, rowsOf, useRows } from "../../../daemon/db/room-rows.ts";
import type { LocalDatabase } from "../../../daemon/db/transact.ts";
import { messages } from "../../../daemon/domain/fabric/table.ts";
import type { Peers } from "../../../daemon/domain/rooms/deps.ts";
import type { MoveDeps } from "../../../daemon/domain/rooms/move/deps.ts";
import type { Ownership } from "../../../daemon/domain/rooms/ownership.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { eraseDirectory } from "./files.ts";

const RETENTION_SECONDS = 3_600;

interface Parts {
  database: LocalDatabase;
  cluster: Cluster;
  ownership: Ownership;
  calls: InFlightCalls;
  peers: Peers;
  paths: Paths;
  hostId: string;
  log: Log;
  /** Rooms in which nothing may be changed, and why. */
  paused: Map<RoomUid, ServiceError>;
}

const nothing = () => {};
const nowhere = () => Promise.resolve();

/** In one step. */
function* done<T>(value: T): Steps<T> {
  yield;
  return value;
}

const noNoun: Branch<unknown> = {
  take: () => done({}),
  ...{
    stage: nowhere,
    put: nothing,
    strays: () => [],
    remove: async () => {},
    replace: nothing,
    drop: nowhere,
    wake: nowhere,
  },
  accept: (given) => Promise.resolve(given),
};

const messagesNoun = (database: LocalDatabase): Branch<unknown> => ({
  ...noNoun,
  *take(queries, roomUid) {
    return { messages: yield* takeRows(queries, messages, rowsOf(queries, roomUid)) };
  },
  stage: (state, { rows }, { over }) =>
    stageRows({ database, over }, messages, rows, (state as { messages: Rows }).messages),
  replace: (queries, _state, { room_uid, rows }) => useRows(queries, room_uid, rows),
  drop: (rows) => database.commit((queries) => void queries.delete(messages).where(eq(messages.room_uid, rows)).run()),
  strays: (queries) => straysIn(queries, messages),
});

const NO_ROWS: Rows = { columns: [], rows: [] };
const NO_SANDBOXES = { ended: NO_ROWS, carried: [], snapshots: [], ports: [] };

export function roomDepsOf({
  database,
  cluster,
  ownership,
  calls,
  peers,
  paths,
  hostId,
  log,
  paused,
}: Parts): MoveDeps {
  const sandboxes = {
    ...{ countLive: () => 0, destroyAll: () => Promise.resolve([]), evacuate: () => Promise.resolve([]) },
    moves: {
      ...{ loaded: () => Promise.resolve([]), fits: () => Promise.resolve({ missing: [], refused: [] }) },
      ...{ leave: () => Promise.resolve({ carried: [], ended: [] }), stays: nothing, take: () => NO_SANDBOXES },
      ...{ put: nothing, place: () => Promise.resolve(new Map()), came: nothing },
    },
    forgetSnapshots: nowhere,
  };
  const fabric = messagesNoun(database);
  const deps: Partial<MoveDeps> = {
    ...{ database, directory: cluster, ownership, calls, paths, hostId, log, sandboxes, peers: () => peers },
    ...{
      moveTally: new CallStats(),
      driveLimitBytes: 1_000,
      driveLimitEntries: 10,
      retentionSeconds: RETENTION_SECONDS,
    },
    pauses: {
      begin: (roomUid, error) => void paused.set(roomUid, error),
      end: (roomUid) => void paused.delete(roomUid),
    },
    ...{ audit: { anchor: nothing, endRoom: nothing }, meter: { closes: nothing }, giveUpSpace: () => false },
    ...{ driveRoot: () => 0, driveQuota: { begin: nothing, renew: nothing, end: nothing } },
    drive: {
      ...{ measure: () => ({ used_bytes: 0, file_count: 0 }), modeOf: () => "open", sweep: nowhere },
      holding: (_roomUid, work) => work(),
      still: (_roomUid, work) => work(),
      ...{ keep: nothing, forget: nothing },
    },
    fabric: {
      endWaits: nothing,
      forget: async (roomUid) => {
        await fabric.drop(rowsOf(database.queries, roomUid));
        await database.commit((queries) => forgetRows(queries, roomUid));
      },
    },
    branch: {
      sandboxes: {
        requireBytes: nowhere,
        use: <T>(_ids: unknown, work: () => Promise<T>) => work(),
      } as unknown as MoveDeps["branch"]["sandboxes"],
      nouns: { agents: noNoun, fabric, barriers: noNoun },
      calls: {
        take: () => done(null),
        replace: nowhere,
        remove: nowhere,
        takeRoom: () => done(null),
        putRoom: nowhere,
      },
    },
    ...{ onEvent: nothing, recoverPorts: nothing, forgetCheckpoints: nothing, onGone: nothing, onStays: nothing },
    erase: async ({ room_uid }) => await eraseDirectory(paths.room(room_uid)),
  };
  return deps as MoveDeps;
}
