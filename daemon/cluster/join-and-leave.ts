/**
 * Joining and leaving a cluster.
 *
 *   init     the first host: the cluster directory is made, and this host's rows become the shared ones
 *   join     a further host, still empty: with a token, it gets the secrets that hosts share
 *   drain    no rooms are placed on it; remove: it is gone, its rooms' names are free
 */
import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { basename } from "node:path";
import { eq, sql } from "drizzle-orm";
import type { RoomUid } from "../../shared/ids.ts";
import { now } from "../core/clock.ts";
import { replaceDurable } from "../core/config/durable-file.ts";
import { faultPoint } from "../core/fault-points.ts";
import type { Log } from "../core/log.ts";
import { ServiceError } from "../core/service-error.ts";
import type { Queries } from "../db/client.ts";
import { locally } from "../db/dry-run.ts";
import { SharedRows } from "../db/shared-rows.ts";
import type { LocalDatabase } from "../db/transact.ts";
import { readAddresses } from "./address.ts";
import { Connections, type Run } from "./connections.ts";
import type { HeldRoom } from "./directory.ts";
import { accept, invite, type Secrets } from "./invitation.ts";
import { forgetMembership, type Membership, readMembership, writeMembership } from "./member-file.ts";
import {
  deletePlacement,
  endContestsOf,
  getHost,
  insertPlacement,
  listHosts,
  movePlacement,
  placementOfRoom,
  placementsOn,
  putHost,
} from "./placements.ts";
import { pointOf } from "./replica.ts";
import { Rounds, writeRows } from "./rounds.ts";
import { makeSchema, VERSION } from "./schema.ts";
import type { OpenSession } from "./session.ts";
import { type HostRow, orgUse, SHARED_TABLES } from "./table.ts";
import { DirectoryUnavailable } from "./unavailable.ts";

const ASK_MS = 10_000;

export interface MembershipDeps {
  /** Of PostgreSQL. */
  url: string;
  database: LocalDatabase;
  log: Log;
  /** Directory of its membership record, in data_dir. */
  directory: string;
  /** Files that are the same on all hosts; `makeSecrets` makes the missing ones. */
  secretFiles: readonly string[];
  makeSecrets(): void;
  /** This host's id, addresses and labels, as other hosts see them. */
  self: Pick<HostRow, "host_id" | "address" | "url" | "labels">;
  /** Reads this host's certificate, or creates it; PEM. */
  certificate(): Promise<string>;
  /** The rooms that it has. */
  rooms(queries: Queries): HeldRoom[];
  /** Sets the epoch of a room's row on this host. Within a commit. */
  setEpoch(queries: Queries, roomUid: RoomUid, epoch: number): void;
  /** Writes an audit record on this host. Within a commit. */
  record(queries: Queries, event: MembershipEvent, details: Record<string, unknown>): void;
  /** How one connection is opened. */
  open?: OpenSession;
}

export type MembershipEvent =
  | "host.joined"
  | "host.invited"
  | "host.draining"
  | "host.active"
  | "host.removed"
  | "host.rejoined"
  | "room.kept";

export function makeMemberships(deps: MembershipDeps) {
  const { database, self, open } = deps;
  const { queries } = database;
  const connections = new Connections({ addresses: readAddresses(deps.url), ...(open && { open }) });
  const transaction = <T>(work: (run: Run) => Promise<T>) => connections.transaction(work, ASK_MS);

  const selfRow = async (): Promise<HostRow> => ({
    ...self,
    state: "active",
    certificate: await deps.certificate(),
    joined_at: now(),
  });
  const joined = (within: Queries) => deps.record(within, "host.joined", { host: self.host_id, address: self.address });
  const become = (cluster_id: string): Membership => ({ cluster_id, host_id: self.host_id, incarnation: randomUUID() });

  /** Before the directory has it: a member must always have the record. */
  const note = async (membership: Membership) => {
    writeMembership(deps.directory, membership);
    await faultPoint("member.noted");
  };
  /** If the outcome of the join is unknown, the record stays. */
  const forgetUnlessUnknown = (error: unknown): never => {
    if (!(error instanceof DirectoryUnavailable && error.ambiguous)) forgetMembership(deps.directory);
    throw error;
  };

  const requireStranger = async () => {
    const member = readMembership(deps.directory);
    if (member === null) return;
    // A join that was interrupted before the directory had it is no membership: the host has not read any service's rows either.
    const isNew = pointOf(queries).seq === 0;
    if (isNew && !(await transaction((run) => isKnown(run, member)))) return;
    throw new ServiceError("invalid_state", {
      detail: "This host is already a member.",
      hint: "See `roomd cluster list`.",
    });
  };
  /** Changes shared rows, as a member. */
  const change = async <T>(work: (within: Queries) => T, extra?: (run: Run) => Promise<unknown>): Promise<T> => {
    const member = readMembership(deps.directory);
    if (!member) {
      throw new ServiceError("invalid_state", {
        detail: "This host is not a member.",
        hint: "Run `roomd cluster init` on the first host, and `roomd cluster join TOKEN` on the others.",
      });
    }
    const shared = sharedRows();
    const rounds = new Rounds({ database, shared, connections, member, log: deps.log, onNews: () => {} });
    return await rounds.change(work, true, extra);
  };
  let closed: SharedRows | null = null;
  const sharedRows = () => {
    closed ??= new SharedRows(queries, SHARED_TABLES);
    return closed;
  };

  const requireHost = (within: Queries, hostId: string): HostRow => {
    const host = getHost(within, hostId);
    if (host && host.state !== "gone") return host;
    const known = listHosts(within).flatMap(({ host_id, state }) => (state === "gone" ? [] : [host_id]));
    throw new ServiceError("invalid_state", {
      detail: `There is no host ${hostId}: the hosts are ${known.join(", ")}.`,
    });
  };

  return {
    /** Throws invalid_state if it is a member, or the database has a service already. */
    init: async (): Promise<{ cluster_id: string; host_id: string }> => {
      await requireStranger();
      const row = await selfRow();
      const membership = become(randomUUID());
      // All rows of this host become shared.
      const rows = sharedRows().all();
      await transaction(async (run) => {
        await makeSchema(run);
        const { rows: there } = await run("SELECT cluster_id FROM roomd.cluster FOR UPDATE");
        if (there.length > 0) {
          throw new ServiceError("already_exists", {
            detail: "The database already has a service of hosts.",
            hint: "Run `roomd cluster token` on one of them and `roomd cluster join TOKEN` here.",
          });
        }
        await run("INSERT INTO roomd.cluster (cluster_id, version, seq) VALUES ($1, $2, 0)", [
          membership.cluster_id,
          VERSION,
        ]);
        await addLease(run, membership);
        await writeRows(run, { seq: 1, change_id: randomUUID() }, rows, self.host_id);
        await note(membership);
      }).catch(forgetUnlessUnknown);
      await change((within) => {
        putHost(within, row);
        for (const room of deps.rooms(within)) insertPlacement(within, { ...room, host_id: self.host_id });
        joined(within);
      });
      return { cluster_id: membership.cluster_id, host_id: self.host_id };
    },

    /** Throws invalid_state if the token is not valid, or this host has organizations of its own. */
    join: async (token: string): Promise<{ cluster_id: string; host_id: string }> => {
      await requireStranger();
      requireEmpty(queries);
      const row = await selfRow();
      const membership = await transaction(async (run) => {
        const { rows } = await run("SELECT cluster_id, version FROM roomd.cluster FOR UPDATE");
        const [cluster] = rows;
        if (!cluster)
          throw new ServiceError("invalid_state", {
            detail: "The database has no service of hosts.",
            hint: "Run `roomd cluster init` on the first host.",
          });
        if (Number(cluster.version) > VERSION)
          throw new ServiceError("invalid_state", {
            detail: "The other hosts have a newer version.",
            hint: "Upgrade this host first.",
          });
        await requireFreeName(run, self.host_id);
        const secrets = await accept(run, token);
        const made = become(String(cluster.cluster_id));
        await addLease(run, made);
        writeSecrets(deps.secretFiles, secrets);
        await note(made);
        return made;
      }).catch(forgetUnlessUnknown);
      await change((within) => {
        putHost(within, row);
        joined(within);
      });
      return { cluster_id: membership.cluster_id, host_id: self.host_id };
    },

    invite: async () => {
      // Refuses a host that is no longer a member, before a token is made.
      await change((within) => deps.record(within, "host.invited", {}));
      deps.makeSecrets();
      return await transaction((run) => invite(run, readSecrets(deps.secretFiles)));
    },

    /**
     * Confirms restored data as the host's, and revokes the original data. Throws invalid_state if there is nothing to confirm, a daemon
     * runs with the original data (unless `force`), or the host already belongs to another incarnation.
     */
    rejoin: async ({ force }: { force: boolean }): Promise<{ host_id: string }> => {
      const member = readMembership(deps.directory);
      if (member?.was === undefined) {
        throw new ServiceError("invalid_state", { detail: "This host's data are not a restored backup of a member." });
      }
      const { was, ...confirmed } = member;
      const { cluster_id, host_id, incarnation } = member;
      await transaction(async (run) => {
        const { rows } = await run(
          `SELECT incarnation, lease_until > now() AS is_alive FROM roomd.cluster, roomd.leases
            WHERE cluster_id = $1 AND host_id = $2 FOR UPDATE`,
          [cluster_id, host_id],
        );
        const [lease] = rows;
        if (lease?.incarnation === incarnation) return;
        if (lease?.incarnation !== was) {
          throw new ServiceError("invalid_state", {
            detail: lease
              ? `Other data is now ${host_id}: another backup was restored, or a host of this name has joined.`
              : `${host_id} is no longer a member of the service.`,
            hint: "Join with a new data_dir: `roomd cluster join TOKEN`.",
          });
        }
        if (lease.is_alive === true && !force) {
          throw new ServiceError("invalid_state", {
            detail: `A daemon runs as ${host_id}, or did so in the last 20 seconds.`,
            hint: "Stop it first. With --force it is no longer a member, and its later changes are lost.",
          });
        }
        await run(
          "UPDATE roomd.leases SET incarnation = $2, run = '', place = '', lease_until = now() WHERE host_id = $1",
          [host_id, incarnation],
        );
      });
      writeMembership(deps.directory, confirmed);
      await change((within) => deps.record(within, "host.rejoined", { host: host_id }));
      return { host_id };
    },

    /** Prevents new placements on the host, or allows them again. */
    setDraining: (hostId: string, isDraining: boolean) =>
      change((within) => {
        const host = requireHost(within, hostId);
        const state = isDraining ? "draining" : "active";
        putHost(within, { ...host, state });
        deps.record(within, `host.${state}`, { host: hostId });
        return { host_id: hostId, state };
      }),

    /** Ends the host's membership; its rooms are lost to the service, and their names are freed. */
    remove: (hostId: string, { force }: { force: boolean }) => {
      const work = (within: Queries) => {
        const host = requireHost(within, hostId);
        const rooms = placementsOn(within, hostId);
        if (rooms.length > 0 && !force) {
          const names = rooms.slice(0, 5).map(({ room_id }) => room_id);
          throw new ServiceError("invalid_state", {
            detail: `${rooms.length === 1 ? "A room is" : `${rooms.length} rooms are`} on ${hostId}: ${names.join(", ")}${rooms.length > 5 ? ", …" : ""}.`,
            hint: "Destroy them first, or pass --force: the service then loses everything in them.",
          });
        }
        for (const { room_uid } of rooms) deletePlacement(within, room_uid);
        endContestsOf(within, hostId);
        within.delete(orgUse).where(eq(orgUse.host_id, hostId)).run();
        putHost(within, { ...host, state: "gone" });
        deps.record(within, "host.removed", { host: hostId, rooms_lost: rooms.length });
        return { host_id: hostId, rooms_lost: rooms.map(({ room_id, org_id }) => ({ room_id, org_id })) };
      };
      // Immediately: a daemon that still runs would claim its rooms again.
      return change(work, (run) => run("DELETE FROM roomd.leases WHERE host_id = $1", [hostId]));
    },

    /**
     * Ends a contest: this host keeps the room, in a new epoch that no other host has. Throws invalid_state if no host contests the room.
     */
    keep: (roomUid: RoomUid) =>
      change((within) => {
        const placed = placementOfRoom(within, roomUid);
        const held = deps.rooms(within).find(({ room_uid }) => room_uid === roomUid);
        if (!placed || !held || placed.contested_by === null || held.epoch !== placed.epoch) {
          throw new ServiceError("invalid_state", {
            detail: `${roomUid} is not on this host and another host in the same epoch.`,
            hint: "The response to a call about the room reports whether it is on two hosts.",
          });
        }
        const { host_id } = self;
        const lost_by = placed.host_id === host_id ? placed.contested_by : placed.host_id;
        const epoch = placed.epoch + 1;
        movePlacement(within, roomUid, { host_id, epoch });
        locally(within, (here) => deps.setEpoch(here, roomUid, epoch));
        const { room_id, org_id } = placed;
        deps.record(within, "room.kept", { room_uid: roomUid, host: host_id, lost_by, epoch });
        return { room_uid: roomUid, room_id, org_id, host_id, lost_by, epoch };
      }),

    close: () => connections.close(),
  };
}

/** Whether the database has it as a member. Waits for a change in progress. */
async function isKnown(run: Run, { cluster_id, host_id, incarnation }: Membership): Promise<boolean> {
  const { rows: made } = await run("SELECT to_regclass('roomd.leases') IS NOT NULL AS is_made");
  if (made[0]?.is_made !== true) return false;
  await run("SELECT FROM roomd.cluster FOR UPDATE");
  const { rows } = await run(
    `SELECT FROM roomd.cluster, roomd.leases WHERE cluster_id = $1 AND host_id = $2 AND incarnation = $3`,
    [cluster_id, host_id, incarnation],
  );
  return rows.length > 0;
}

async function requireFreeName(run: Run, hostId: string): Promise<void> {
  const { rows } = await run(
    `SELECT FROM roomd.rows WHERE tbl = 'hosts' AND key = $1 AND "row" ->> 'state' <> 'gone'`,
    [JSON.stringify([hostId])],
  );
  if (rows.length === 0) return;
  throw new ServiceError("already_exists", {
    detail: `There is a host ${hostId}.`,
    hint: "Set another host_id on this host, or remove the other host with `roomd cluster remove`.",
  });
}

/** Existing organizations would have no owner in the cluster: two services cannot be merged. */
function requireEmpty(queries: Queries): void {
  const [{ count } = { count: 0 }] = queries.all<{ count: number }>(sql`SELECT count(*) AS count FROM orgs`);
  if (count === 0) return;
  throw new ServiceError("invalid_state", {
    detail: "This host has organizations of its own.",
    hint: "Join with a new data_dir; templates can be built, or copied, afterwards.",
  });
}

function readSecrets(files: readonly string[]): Secrets {
  return Object.fromEntries(files.map((file) => [basename(file), readFileSync(file).toString("base64")]));
}

function writeSecrets(files: readonly string[], secrets: Secrets): void {
  for (const file of files) {
    const content = secrets[basename(file)];
    if (content !== undefined) replaceDurable(file, Buffer.from(content, "base64"), 0o600);
  }
}

async function addLease(run: Run, { host_id, incarnation }: Membership): Promise<void> {
  await run(
    `INSERT INTO roomd.leases (host_id, incarnation, version, lease_until, load) VALUES ($1, $2, '', now(), '{}')
     ON CONFLICT (host_id) DO UPDATE SET incarnation = excluded.incarnation, lease_until = now(), run = ''`,
    [host_id, incarnation],
  );
}
