/** The Directory of several hosts: a PostgreSQL database is authoritative, and this host's tables are a copy that follows it. */
import type { OrgId, RoomUid } from "../../shared/ids.ts";
import type { AnchorStore } from "../core/anchor-store.ts";
import type { CallStats } from "../core/call/call-stats.ts";
import { startInterval, stopTimer } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import { inPieces, loopTime, Pieces } from "../core/loop/index.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { trialOf } from "../db/dry-run.ts";
import { SharedRows } from "../db/shared-rows.ts";
import type { LocalDatabase } from "../db/transact.ts";
import { readAddresses } from "./address.ts";
import { makeAnchors } from "./anchors.ts";
import { HostChoice } from "./choose-host.ts";
import { claimRoom, ownerIn, refuseClaims } from "./claims.ts";
import { askAheadMs } from "./clock-error.ts";
import { Connections, type Listening, type Run, type ServerSettings } from "./connections.ts";
import type { Directory, Host, PlacedRoom, WantedPlace } from "./directory.ts";
import { forgetCalls, type NamedCall } from "./done-calls.ts";
import { Leases, type Load } from "./leases.ts";
import type { Member, MembershipLock } from "./membership-lock.ts";
import { addUse } from "./moved-use.ts";
import {
  getHost,
  insertPlacement,
  listHosts,
  orgPlacementsOn,
  placementOf,
  placementOfRoom,
  prepareHostLookup,
  prepareOwnerLookup,
  preparePlacementLookup,
  putHost,
  setUse,
  useBut,
  usualRoomMib,
} from "./placements.ts";
import type { Recovered } from "./recovered.ts";
import { ROUND_MS, Rounds } from "./rounds.ts";
import { bringUp, CHANNEL, forgetOld, whoFreed } from "./schema.ts";
import {
  compare,
  differences,
  inParts,
  type LostName,
  lostNames,
  type Self,
  type Sources,
  type Suspects,
} from "./self-sync.ts";
import type { OpenSession } from "./session.ts";
import { StateSince } from "./state-since.ts";
import { type HostRow, SHARED_TABLES } from "./table.ts";
import { countUnfit, someUnfit } from "./unfit.ts";

/** Poll interval for changes without a hint, and for the comparison of this host's rows with its state. */
const LOOK_MS = 1_000;
/** Corrections that wait for their round together: changes of calls wait no longer than for these. */
const MAX_CORRECTING = 8;
/** How often each host deletes expired rows. */
const PRUNE_MS = 3_600_000;
const ASK_MS = 5_000;
const BRING_UP_MS = 5_000;
/** Maximum number of rows listed for the operator. */
const MAX_NAMED = 20;

export interface PostgresDeps {
  /** URL of the PostgreSQL database that hosts share. */
  url: string;
  database: LocalDatabase;
  member: Member;
  /** This host's addresses and labels, as other hosts see them. */
  self: Omit<Self, "host_id">;
  version: string;
  /** Distinguishes this daemon from another on a copy of its data. */
  holder: MembershipLock;
  /** Called for a committed change of this host that has no audit record here. Within a commit. */
  recovered(queries: Queries, change: Recovered): void;
  /** Called after lost ends, revocations or epochs were put into the cluster directory again. Within a commit. */
  putAgain(queries: Queries, change: Recovered): void;
  /**
   * Called if another room has taken the name of a room of this host, because the cluster directory lost its placement. Within a commit.
   */
  nameLost(queries: Queries, room: LostName): void;
  /** How rounds go. */
  tally: CallStats;
  log: Log;
  /** How one connection is opened. */
  open?: OpenSession;
}

export interface Cluster extends Directory {
  /** Starts following and reporting this host's state; resolves after both were attempted. */
  start(sources: Sources): Promise<void>;
  hosts(): Host[];
  /** All member hosts except this one. */
  others(): Host[];
  /**
   * Host of a new room: null for this one. Throws host_unreachable, or insufficient_capacity if no host matches. If the name is already
   * placed on another host, returns that host; if here, null.
   */
  choose(wanted: WantedPlace): Host | null;
  /** An organization's rooms on another host, according to this host's copy, in pages. */
  placedOn(orgId: OrgId, hostId: string): Iterable<PlacedRoom[]>;
  /** The host of a room that is not here; null: none. Rejects with cluster_unavailable if that is unknown. */
  elsewhere(orgId: OrgId, roomId: string): Promise<Host | null>;
  /** Whether this host has read the cluster directory since it started. */
  hasFollowed(): boolean;
  /**
   * Within a commit of `database`: the host that carried out this call earlier, `here` for this one; null: none, and the call is noted as
   * this host's if the commit changes shared rows.
   */
  doneBy(queries: Queries, call: NamedCall): Host | "here" | null;
  /** Maximum age of the data read here, in seconds. */
  behindSeconds(): number;
  loadOf(hostId: string): Load | null;
  versionOf(hostId: string): string | null;
  /** Lead of this host's clock over the database's in ms, by its last answer; null: no answer yet. */
  clockAheadMs(): number | null;
  /** The same, measured now. Rejects if the database is unavailable. */
  askClockAheadMs(): Promise<number>;
  /** Whether this host's data is a member, by a query of the cluster directory. Rejects if the database is unavailable. */
  askIsMember(): Promise<boolean>;
  /** Number of servers, and the settings of the last connected one; null: none yet. */
  serverSettings(): { servers: number; settings: ServerSettings | null };
  /** Number of rows that do not fit this host's tables, and the names and reasons of some. */
  unfitRows(): { rows: number; named: string[] };
  /** Store for the anchors of this host's audit chains. */
  anchors: AnchorStore;
  /** Time since which a host is in its state; null: since before this host began to observe it. */
  sinceOf(host: Host): string | null;
}

export function makePostgres(deps: PostgresDeps): Cluster {
  const { url, database, member, self, version, holder, recovered, putAgain, nameLost, tally, log, open } = deps;
  const { queries } = database;
  const placementIn = preparePlacementLookup(queries);
  const hostOf = prepareHostLookup(queries);
  const ownerOf = prepareOwnerLookup(queries);
  const { host_id } = member;
  const addresses = readAddresses(url);
  const connections = new Connections({ addresses, ...(open && { open }) });
  const shared = new SharedRows(queries, SHARED_TABLES);
  const listeners: (() => void)[] = [];
  /** Whether this host was removed, by the cluster directory. Every call needs it, so it is updated when changes arrive. */
  let isRemoved = false;
  const onNews = () => {
    isRemoved = hostOf(host_id)?.state === "gone";
    for (const listener of listeners) listener();
  };
  /** False in an operator's command, which may run concurrently with the daemon. */
  let isDaemon = false;
  const rounds = new Rounds({
    ...{ database, shared, connections, member, tally, log, onNews, patienceMs: ROUND_MS },
    run: () => (isDaemon ? holder : null),
    recovered: (within, change) => isDaemon && recovered(within, change),
    putAgain: (within, change) => isDaemon && putAgain(within, change),
  });
  const leases = new Leases({ connections, member, holder, version, log });
  const since = new StateSince();
  /** Rooms that were reported because their name is another room's. */
  const nameless = new Set<RoomUid>();
  let looking: Timer | null = null;
  let pruning: Timer | null = null;
  let listening: Listening | null = null;
  let sources: Sources | null = null;
  /** Whether this host's state may have changed since the last comparison with the cluster directory. */
  let mayDiffer = true;
  let isComparing = false;

  const toHost = (row: HostRow): Host => {
    const { state, ...host } = row;
    const lease = leases.of(row.host_id);
    if (state === "gone") return row;
    // If the database is unavailable, the other hosts' state is unknown.
    if (leases.isFresh && !lease?.is_alive) return { ...host, state: "unreachable" };
    return { ...host, state: state === "active" && lease?.load.is_degraded ? "degraded" : state };
  };
  const found = (hostId: string): Host | null => {
    const row = hostOf(hostId);
    return row ? toHost(row) : null;
  };

  /** If the database is unavailable, the other hosts' state is stale. */
  const look = () => leases.isFresh && since.note(listHosts(queries).map(toHost));

  const choice = new HostChoice();
  const chosenOf = (rows: HostRow[], requested: WantedPlace) => {
    const candidates = rows.map((row) => {
      const { load = null, alive_until: beat = null } = leases.of(row.host_id) ?? {};
      return { host: toHost(row), load, beat };
    });
    return choice.choose(candidates, requested, usualRoomMib(queries, requested.org_id));
  };

  const differ = (within: Queries, from: Sources, suspects: Suspects) =>
    differences(within, { host_id, ...self }, from, suspects);
  const correct = (suspects: Suspects, from: Sources) =>
    rounds.change((within) => {
      for (const set of differ(within, from, suspects)) set(within);
    }, true);

  const reportNames = async ({ rooms }: Suspects, from: Sources) => {
    const isNew = ({ room_uid }: LostName) => !nameless.has(room_uid);
    if (!lostNames(queries, host_id, from, rooms).some(isNew)) return;
    const lost = await database.commit((within) => {
      const found = lostNames(within, host_id, from, rooms).filter(isNew);
      for (const room of found) nameLost(within, room);
      return found;
    });
    for (const { room_uid } of lost) nameless.add(room_uid);
  };

  /** Never rejects; failures are retried. */
  const settling = async (work: (from: Sources) => Promise<void>) => {
    if (!sources) return;
    try {
      await work(sources);
    } catch (error) {
      mayDiffer = true;
      log.warn("failed to reconcile this host's rows in the directory; will retry", { error: describeError(error) });
    }
  };

  /** Reconciles this host's rows in the cluster directory with its state. */
  const settle = () =>
    settling(async (from) => {
      if (!mayDiffer || isComparing) return;
      [mayDiffer, isComparing] = [false, true];
      const pieces = new Pieces(loopTime, "host", "cluster.settle");
      try {
        await pieces.turn();
        const found = await inPieces(compare(queries, host_id, from), pieces);
        const wrong: Suspects[] = [];
        const correctAll = () => Promise.all(wrong.splice(0).map((suspects) => correct(suspects, from)));
        for (const suspects of inParts(found)) {
          await pieces.turn();
          await reportNames(suspects, from);
          if (differ(queries, from, suspects).length > 0) wrong.push(suspects);
          if (wrong.length === MAX_CORRECTING) await correctAll();
        }
        await correctAll();
      } finally {
        isComparing = false;
      }
    });

  const forgetOldCalls = async () => {
    while (await connections.transaction(forgetCalls, ASK_MS));
  };
  const forgetAll = async () => {
    while ((await connections.transaction(forgetOld, ASK_MS)) > 0);
  };

  return {
    database: {
      ...database,
      commit: (work, vital = true) => rounds.change(work, vital),
      commitWithin: (_ms, work) => rounds.change(work, false),
    },

    place: (within, room) => {
      if (placementOf(within, room.org_id, room.room_id)) {
        throw new ServiceError("room_id_in_use", {
          detail: `There is an active room ${room.room_id}.`,
          hint: "Use it, destroy it first, or choose another room_id.",
        });
      }
      const { room_uid, org_id, room_id, labels, created_at } = room;
      insertPlacement(within, { room_uid, org_id, room_id, labels, created_at, host_id, epoch: 1 });
    },

    choose: (requested) => {
      const placed = placementIn(requested.org_id, requested.room_id);
      const named = placed ? found(placed.host_id) : null;
      const chosen = named ?? chosenOf(listHosts(queries), requested);
      return chosen.host_id === host_id ? null : chosen;
    },

    chooseOther: (room) =>
      chosenOf(
        listHosts(queries).filter((row) => row.host_id !== host_id),
        room,
      ),

    drain: () =>
      rounds.change((within) => {
        const row = getHost(within, host_id);
        if (row?.state === "active") putHost(within, { ...row, state: "draining" });
      }, true),

    release: (roomUid) =>
      settling(async (from) => {
        const placed = placementOfRoom(queries, roomUid);
        await correct({ rooms: [roomUid], orgs: placed ? [placed.org_id] : [] }, from);
      }),

    elsewhere: async (orgId, roomId) => {
      // The placement may be so recent that its notification has not arrived.
      let placed = placementIn(orgId, roomId);
      if (!placed) {
        await rounds.follow();
        placed = placementIn(orgId, roomId);
      }
      return placed && placed.host_id !== host_id ? found(placed.host_id) : null;
    },

    others: () =>
      listHosts(queries).flatMap((row) => (row.host_id === host_id || row.state === "gone" ? [] : [toHost(row)])),

    placed: (roomUid) => placementOfRoom(queries, roomUid) ?? null,

    placedOn: (orgId, hostId) => orgPlacementsOn(queries, orgId, hostId),

    withOthers: (within, orgId, here) => {
      if (trialOf(within) && sources) setUse(within, orgId, host_id, { ...sources.used(within, orgId), ...here });
      return addUse(here, useBut(within, orgId, host_id));
    },

    usedElsewhere: (within, orgId) => useBut(within, orgId, host_id).used_micro,

    owner: ownerOf,

    // A separate round waits for all rounds in progress, also for one with an unknown outcome.
    trueOwner: (roomUid) => rounds.change((within) => ownerIn(within, roomUid), true),

    freedBy: async (roomUid) => {
      const ask = (run: Run) => whoFreed(run, roomUid);
      return await connections.transaction(ask, ASK_MS).catch((cause: unknown) => {
        throw new ServiceError("cluster_unavailable", { cause });
      });
    },

    claim: (roomUid, epoch, to) =>
      rounds.change((within) => claimRoom(within, roomUid, { from: host_id, epoch, to }, sources?.used), true),

    refuse: (roomUid, epoch) => rounds.change((within) => refuseClaims(within, roomUid, epoch), true),

    doneBy: (within, call) => {
      // Outside of a trial the change is final, and its call is already noted.
      if (!trialOf(within)) return null;
      const by = rounds.doneBy(call);
      // "here" also if the host that carried out the call is unknown to this host.
      return by === null ? null : by === host_id ? "here" : (found(by) ?? "here");
    },

    onChange: (listener) => void listeners.push(listener),

    start: async (given) => {
      sources = given;
      isDaemon = true;
      isRemoved = hostOf(host_id)?.state === "gone";
      database.onCommit(() => {
        mayDiffer = true;
      });
      // If this fails, the next caller that needs the missing part retries.
      const broughtUp = connections
        .transaction(bringUp, BRING_UP_MS)
        .catch((error: unknown) =>
          log.warn("failed to migrate the directory's schema; will retry", { error: describeError(error) }),
        );
      await Promise.all([rounds.pull(), leases.start(given.load), broughtUp]);
      await settle();
      look();
      listening = connections.listen(CHANNEL, () => void rounds.pull());
      pruning = startInterval(() => {
        forgetOldCalls().catch((error: unknown) =>
          log.warn("failed to delete calls that are older than their replies", { error: describeError(error) }),
        );
        forgetAll().catch((error: unknown) =>
          log.warn("failed to forget old changes", { error: describeError(error) }),
        );
      }, PRUNE_MS);
      looking = startInterval(() => {
        void rounds.pull();
        void settle();
        look();
      }, LOOK_MS);
    },

    hosts: () => listHosts(queries).map(toHost),
    behindSeconds: () => rounds.staleMs / 1000,
    isMember: () => leases.isMember && !isRemoved,
    hasFollowed: () => rounds.hasFollowed,
    isOthers: ({ room_uid, org_id, room_id }) => {
      const placed = ownerOf(room_uid);
      const named = placed ? null : placementIn(org_id, room_id);
      return (placed !== null && placed.host_id !== host_id) || (named !== null && named !== undefined);
    },
    askIsMember: () =>
      connections.transaction(async (run) => {
        const { rows } = await run("SELECT FROM roomd.leases WHERE host_id = $1 AND incarnation = $2", [
          host_id,
          member.incarnation,
        ]);
        return rows.length > 0;
      }, ASK_MS),
    serverSettings: () => ({ servers: addresses.length, settings: connections.settings }),
    unfitRows: () => ({
      rows: countUnfit(queries),
      named: someUnfit(queries, MAX_NAMED).map(({ tbl, key, reason }) => `${tbl} ${key}: ${reason}`),
    }),
    host: found,
    loadOf: (hostId) => leases.of(hostId)?.load ?? null,
    versionOf: (hostId) => leases.of(hostId)?.version ?? null,
    // The expiry of its last lease, also for a host that was unresponsive before this one started.
    sinceOf: (host) => (host.state === "unreachable" ? leases.of(host.host_id)?.alive_until : null) ?? since.of(host),

    clockAheadMs: () => leases.aheadMs,
    askClockAheadMs: () => askAheadMs((work, deadlineMs) => connections.transaction(work, deadlineMs), ASK_MS),

    anchors: makeAnchors({ connections, member, holder }),

    close: async () => {
      stopTimer(looking);
      stopTimer(pruning);
      listening?.stop();
      await leases.stop();
      await rounds.settle();
      connections.close();
    },
  };
}
