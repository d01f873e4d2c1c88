/** Owns the Directory of several hosts: a PostgreSQL database is what is true, and this host's tables are a copy that follows it. */
import type { OrgId } from "../../shared/ids.ts";
import type { Log } from "../core/log.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import { trialOf } from "../db/rehearsal.ts";
import { SharedRows } from "../db/shared-rows.ts";
import type { Database } from "../db/transact.ts";
import { readAddress } from "./address.ts";
import { Connections } from "./connections.ts";
import type { Directory, Host, OrgUse } from "./directory.ts";
import { Leases, type Load } from "./leases.ts";
import {
  deletePlacement,
  getHost,
  insertPlacement,
  listHosts,
  placementOf,
  setUse,
  useBut,
  usesOf,
} from "./placements.ts";
import { type Member, Rounds } from "./rounds.ts";
import { CHANNEL } from "./schema.ts";
import { type HostRow, SHARED_TABLES } from "./table.ts";

/** Where no hint comes, or it is lost. */
const PULL_MS = 1_000;
/** How soon what could not be released is tried again. */
const RETRY_MS = 2_000;

export interface PostgresDeps {
  /** A PostgreSQL database. */
  url: string;
  database: Database;
  member: Member;
  version: string;
  log: Log;
  load(): Load;
  /** What an organization has here just now. */
  used(orgId: OrgId): OrgUse;
}

export interface Cluster extends Directory {
  /** Begins to follow; resolves once it was tried. */
  start(): Promise<void>;
  hosts(): Host[];
  host(hostId: string): Host | null;
  loadOf(hostId: string): Load | null;
  versionOf(hostId: string): string | null;
}

export function makePostgres(deps: PostgresDeps): Cluster {
  const { database, member, log } = deps;
  const { queries } = database;
  const connections = new Connections({ address: readAddress(deps.url) });
  const shared = new SharedRows(queries, SHARED_TABLES);
  const listeners: (() => void)[] = [];
  const onNews = () => {
    for (const listener of listeners) listener();
  };
  const rounds = new Rounds({ database, shared, connections, member, log, onNews });
  const leases = new Leases({ connections, member, version: deps.version, log, load: deps.load });
  const retries = new Set<Timer>();
  let pulling: Timer | null = null;
  let listening: { stop(): void } | null = null;
  let isClosed = false;

  const toHost = (row: HostRow): Host => {
    const { state, ...host } = row;
    const lease = leases.of(row.host_id);
    // Where the database is away it is not known who else is.
    const isSilent = leases.isFresh && !(lease?.is_alive ?? false);
    if (state === "gone") return row;
    if (isSilent) return { ...host, state: "unreachable" };
    return { ...host, state: state === "active" && lease?.load.is_degraded ? "degraded" : state };
  };
  const found = (hostId: string): Host | null => {
    const row = getHost(queries, hostId);
    return row ? toHost(row) : null;
  };

  const sharedDatabase: Database = {
    ...database,
    commit: (work, vital = true) => rounds.change(work, vital),
    commitWithin: (_ms, work) => rounds.change(work, false),
  };

  const release: Directory["release"] = async (roomUid) => {
    try {
      await rounds.change((within) => deletePlacement(within, roomUid), true);
    } catch (error) {
      if (isClosed) return;
      log.warn("a room's name not released yet", { room_uid: roomUid, error: describeError(error) });
      const timer = setTimeout(() => {
        retries.delete(timer);
        void release(roomUid);
      }, RETRY_MS);
      retries.add(timer);
    }
  };

  /** What organizations have here counts elsewhere as it was last said. */
  const sayUse = async () => {
    const outdated = usesOf(queries, member.host_id).filter(
      ({ org_id, host_id: _, ...said }) => !isSame(said, deps.used(org_id)),
    );
    if (outdated.length === 0) return;
    await rounds
      .change((within) => {
        for (const { org_id } of outdated) setUse(within, org_id, member.host_id, deps.used(org_id));
      }, false)
      .catch((error: unknown) => log.debug("what organizations use not said", { error: describeError(error) }));
  };

  return {
    database: sharedDatabase,

    place: (within, room) => {
      const taken = placementOf(within, room.org_id, room.room_id);
      if (taken) {
        throw new ServiceError("room_id_in_use", {
          detail: `There is an active room ${room.room_id}.`,
          hint: "Use it, destroy it first, or choose another room_id.",
        });
      }
      insertPlacement(within, { ...room, host_id: member.host_id, epoch: 1 });
    },

    release,

    elsewhere: (orgId, roomId) => {
      const placed = placementOf(queries, orgId, roomId);
      return placed && placed.host_id !== member.host_id ? found(placed.host_id) : null;
    },

    withOthers: (within, orgId, here) => {
      if (trialOf(within)) setUse(within, orgId, member.host_id, here);
      return added(here, useBut(within, orgId, member.host_id));
    },

    onChange: (listener) => void listeners.push(listener),

    start: async () => {
      await Promise.all([rounds.pull(), leases.start()]);
      listening = connections.listen(CHANNEL, () => void rounds.pull());
      pulling = setInterval(() => {
        void rounds.pull();
        void sayUse();
      }, PULL_MS);
    },

    hosts: () => listHosts(queries).map(toHost),
    host: found,
    loadOf: (hostId) => leases.of(hostId)?.load ?? null,
    versionOf: (hostId) => leases.of(hostId)?.version ?? null,

    close: async () => {
      isClosed = true;
      clearInterval(pulling ?? undefined);
      for (const timer of retries) clearTimeout(timer);
      listening?.stop();
      await leases.stop();
      await rounds.settle();
      connections.close();
    },
  };
}

const KEYS = ["rooms", "sandboxes", "memory_mib", "disk_gib"] as const;

const isSame = (a: OrgUse, b: OrgUse) => KEYS.every((key) => a[key] === b[key]);

const added = (a: OrgUse, b: OrgUse): OrgUse => ({
  rooms: a.rooms + b.rooms,
  sandboxes: a.sandboxes + b.sandboxes,
  memory_mib: a.memory_mib + b.memory_mib,
  disk_gib: a.disk_gib + b.disk_gib,
});
