/**
 * The part of a daemon that a simulation runs: its database, its directory and its rooms, made of the classes that a daemon is made of. A call
 * takes the steps of edge/pipeline/pipeline.ts that concern several hosts.
 */
import { mkdirSync } from "node:fs";
import type { Host } from "../../../daemon/cluster/directory.ts";
import { Elsewhere } from "../../../daemon/cluster/elsewhere.ts";
import type { Member, MembershipLock } from "../../../daemon/cluster/membership-lock.ts";
import { type Cluster, makePostgres } from "../../../daemon/cluster/postgres.ts";
import type { OpenSession } from "../../../daemon/cluster/session.ts";
import { type HeldResources, makeHeld } from "../../../daemon/compose/quota-use.ts";
import { CallStats } from "../../../daemon/core/call/call-stats.ts";
import { InFlightCalls } from "../../../daemon/core/call/in-flight-calls.ts";
import type { Bound, Caller, KeyCall } from "../../../daemon/core/call/operation.ts";
import { now } from "../../../daemon/core/clock.ts";
import { makePaths, type Paths } from "../../../daemon/core/config/paths.ts";
import type { Log } from "../../../daemon/core/log.ts";
import { ServiceError } from "../../../daemon/core/service-error.ts";
import { type Connection, openConnection, type Queries, rawQuery } from "../../../daemon/db/client.ts";
import type { LogSync } from "../../../daemon/db/log-sync.ts";
import { rowsOf } from "../../../daemon/db/room-rows.ts";
import { type LocalDatabase, makeDatabase, violatesUnique } from "../../../daemon/db/transact.ts";
import { findMessage, insertMessage, lastSeq } from "../../../daemon/domain/fabric/store.ts";
import { makeQuota, type PlanCaps } from "../../../daemon/domain/orgs/index.ts";
import { deleteSshKey, insertSshKey } from "../../../daemon/domain/orgs/ssh-keys-store.ts";
import { Locks } from "../../../daemon/domain/rooms/checkpoints/locks.ts";
import { inUse, makeDirectories, newRoom, placing } from "../../../daemon/domain/rooms/create.ts";
import type { Peers } from "../../../daemon/domain/rooms/deps.ts";
import { retireDirectory } from "../../../daemon/domain/rooms/destroy.ts";
import { removeUnborn } from "../../../daemon/domain/rooms/erase.ts";
import {
  arrivedRooms,
  arrivingRooms,
  countAllRooms,
  leavingRooms,
  liveRooms,
  makeOwnership,
  makeRoomFinder,
  misplacedRooms,
  type PeerCalls,
  placedWithoutRoom,
  unsettledRooms,
  updateRoom,
} from "../../../daemon/domain/rooms/index.ts";
import type { MoveDeps } from "../../../daemon/domain/rooms/move/deps.ts";
import { type Moves, makeMoves } from "../../../daemon/domain/rooms/move/index.ts";
import { claimRooms, getRoom, insertRoom } from "../../../daemon/domain/rooms/store.ts";
import type { RoomRow } from "../../../daemon/domain/rooms/table.ts";
import type { KeyId, RoomUid, SshKeyId } from "../../../shared/ids.ts";
import { ORG } from "./first-state.ts";
import { roomDepsOf } from "./rooms.ts";

const nothing = () => {};
export const URL = "postgres://simulation@simulation/simulation";
export const MAX_ROOMS = 4;
const NO_LIMIT = { soft_cap: 1e9, hard_cap: 1e9 };
const CAPS: PlanCaps = {
  ...{ rooms: { soft_cap: MAX_ROOMS, hard_cap: MAX_ROOMS }, sandboxes: NO_LIMIT, memory_mib: NO_LIMIT },
  ...{ disk_gib: NO_LIMIT, template_mib: NO_LIMIT, drive: { soft_cap_bytes: 1e15, hard_cap_bytes: 1e15 } },
  credits: null,
};
const CALLER: Caller = {
  ...{ org_id: ORG, key_id: "kid_1" as KeyId, name: "key", plan: "starter", scopes: [] },
  ...{ room_ids: null, agent_id: null, expires_at: null },
};
const CALL = { caller: CALLER } as unknown as KeyCall;

export type Asked =
  | { does: "create"; room_id: string; host?: string; idempotency_key?: string }
  | { does: "send"; room_id: string; message_id: string }
  | { does: "read"; room_id: string }
  | { does: "destroy"; room_id: string }
  | { does: "move"; room_id: string; host: string };

/** Outcome of a call, and its row. */
export interface Done {
  host: string;
  room_uid: RoomUid;
  epoch: number;
  /** Of a read: all that is in the room. */
  messages?: string[];
}

export interface DaemonDeps {
  file: string;
  member: Member;
  holder: MembershipLock;
  /** Flushes of the database's log. */
  flushes: LogSync;
  open: OpenSession;
  log: Log;
  /** Directory of the files of rooms. */
  data: string;
  /** The host was set back: files of its rooms are made again. */
  lacksDrives: boolean;
  peers: Peers;
  /** Has another host carry a call out; rejects as that does. */
  forward(host: Host, request: Asked): Promise<Done>;
  /** Called before a room is destroyed. */
  destroys(request: Asked, done: Done): void;
  /** Called once a write is durable, before its caller has an answer. */
  accepted(request: Asked, done: Done): void;
}

export class Daemon {
  readonly #deps: DaemonDeps;
  readonly #connection: Connection;
  readonly database: LocalDatabase;
  readonly cluster: Cluster;
  readonly #finder: ReturnType<typeof makeRoomFinder>;
  readonly #quota: ReturnType<typeof makeQuota>;
  readonly #held: HeldResources;
  readonly #calls = new InFlightCalls();
  readonly #rooms: MoveDeps;
  readonly #paused = new Map<RoomUid, ServiceError>();
  readonly #moves: Moves;
  readonly #paths: Paths;
  readonly #locks = new Locks();
  readonly #ending = new Map<RoomUid, Promise<void>>();
  /** Whether it answers calls. */
  isOpen = false;

  constructor(deps: DaemonDeps) {
    this.#deps = deps;
    const { member, holder, log, open } = deps;
    this.#connection = openConnection(deps.file, { alone: false });
    this.database = makeDatabase(this.#connection, () => false, deps.flushes);
    const { database } = this;
    this.cluster = makePostgres({
      ...{ url: URL, database, member, holder, version: "1", log, open },
      self: { address: `${member.host_id}:1`, url: `http://${member.host_id}`, labels: {} },
      ...{ recovered: nothing, putAgain: nothing, nameLost: nothing, tally: new CallStats() },
    });
    const paths = makePaths({ data_dir: deps.data, runtime_dir: "/run/simulation" });
    this.#paths = paths;
    const ownership = makeOwnership({ directory: this.cluster, hostId: member.host_id });
    this.#finder = makeRoomFinder(database, paths, ownership);
    const held = makeHeld(member.host_id);
    this.#held = held;
    this.#quota = makeQuota({
      ...{ queries: database.queries, plans: { free: CAPS, starter: CAPS } },
      held: (within, orgId) => this.cluster.withOthers(within, orgId, held.of(within, orgId)),
      ...{ driveUsed: () => Promise.resolve(0), templateMib: () => Promise.resolve(0) },
    });
    this.#rooms = roomDepsOf({
      ...{ database, cluster: this.cluster, ownership, calls: this.#calls, peers: deps.peers, paths, log },
      ...{ hostId: member.host_id, paused: this.#paused },
    });
    this.#moves = makeMoves({
      ...{ deps: this.#rooms, locks: this.#locks, schedule: nothing },
      findRow: (call, roomId) => this.#finder.findRow(call.caller, roomId),
    });
  }

  get forPeers(): PeerCalls {
    return this.#moves.forPeers;
  }

  async start(): Promise<void> {
    const { queries } = this.database;
    await this.cluster.start({
      ...{ certificate: "certificate", unsettled: unsettledRooms, misplaced: misplacedRooms, placedWithoutRoom },
      ...{ arriving: () => arrivingRooms(this.#paths), leaving: () => leavingRooms(queries) },
      ...{ arrived: arrivedRooms, used: this.#held.of, allUsed: this.#held.all },
      load: () => ({
        ...{ memory_mib: { promised: 0, total: 1024 }, cpus: 1, rooms: countAllRooms(queries), sandboxes: 0 },
        ...{ is_degraded: false, templates: [] },
      }),
    });
    await this.database.commit((within) => claimRooms(within, this.#deps.member.host_id));
    const active = this.#deps.lacksDrives ? liveRooms(queries).filter(({ state }) => state === "active") : [];
    for (const { room_uid } of active) mkdirSync(this.#paths.drive(room_uid), { recursive: true });
    await this.#moves.recover();
    for (const { room_uid, state } of liveRooms(queries)) if (state === "destroying") void this.#end(room_uid);
    this.isOpen = true;
  }

  /** Closes the database's file, after the process has ended. */
  closeFile(): void {
    this.#connection.close();
  }

  get queries(): Queries {
    return this.database.queries;
  }

  /** Carries a call out, here or on the host that has the room. A call that was forwarded goes no further. */
  async call(request: Asked, isForwarded = false): Promise<Done> {
    try {
      return await this.#here(request, isForwarded);
    } catch (error) {
      const host = await this.#hostOf(error, request);
      if (host === null) throw error;
      if (isForwarded) throw new ServiceError("room_moving");
      return await this.#deps.forward(host, request);
    }
  }

  async #hostOf(error: unknown, { room_id }: Asked): Promise<Host | null> {
    if (error instanceof Elsewhere) return error.host;
    if (!(error instanceof ServiceError && error.code === "room_not_found")) return null;
    const host = await this.cluster.elsewhere(ORG, room_id);
    if (host === null && this.#moves.isComing(ORG, room_id)) throw new ServiceError("room_moving");
    return host;
  }

  async #here(request: Asked, isForwarded: boolean): Promise<Done> {
    const isChange = request.does !== "read";
    if (isChange) this.#requireMember();
    if (request.does === "create") return await this.#create(request, isForwarded);
    const call = this.#calls.enter({ org_id: ORG, room_id: request.room_id });
    try {
      const row = this.#finder.findRow(CALLER, request.room_id);
      if (isChange && !this.cluster.hasFollowed()) throw new ServiceError("cluster_unavailable");
      const { room_uid, epoch } = row;
      const done: Done = { host: this.#deps.member.host_id, room_uid, epoch };
      if (request.does === "read") return { ...done, messages: messagesOf(this.queries, room_uid) };
      if (request.does === "move") return await this.#move(request);
      if (request.does === "send") await this.#send(room_uid, request.message_id);
      else {
        this.#deps.destroys(request, done);
        await this.#destroy(room_uid);
      }
      this.#deps.accepted(request, done);
      return done;
    } finally {
      call.leave();
    }
  }

  async #create(request: Asked & { does: "create" }, isForwarded: boolean): Promise<Done> {
    const { room_id, host, idempotency_key } = request;
    const chosen = isForwarded ? null : this.cluster.choose({ org_id: ORG, room_id, host });
    if (chosen) throw new Elsewhere(chosen);
    if (this.#finder.lookup(ORG, room_id)) throw inUse(room_id);
    const row = newRoom(this.#rooms, CALL, room_id, {});
    await makeDirectories(this.#rooms, row);
    try {
      await placing(this.#rooms, row, (queries) => {
        if (idempotency_key !== undefined) this.#requireFirst(queries, idempotency_key);
        insertRoom(queries, row);
        this.#quota.require(queries, ORG, { rooms: 1 });
      });
    } catch (error) {
      await removeUnborn(this.#rooms, row.room_uid);
      throw violatesUnique(error, "rooms.room_id") ? inUse(room_id) : error;
    }
    const done: Done = { host: this.#deps.member.host_id, room_uid: row.room_uid, epoch: row.epoch };
    this.#deps.accepted(request, done);
    return done;
  }

  /** As a call with an Idempotency-Key that changes shared rows. */
  #requireFirst(queries: Queries, idempotency_key: string): void {
    const call = { key_id: CALLER.key_id, method: "POST", path: "/v1/rooms", idempotency_key };
    const by = this.cluster.doneBy(queries, call);
    if (by === null) return;
    if (by !== "here") throw new Elsewhere(by);
    throw new ServiceError("history_gone");
  }

  async #send(roomUid: RoomUid, message_id: string): Promise<void> {
    await this.database.commit((queries) => {
      this.#requireOpen(roomUid);
      if (findMessage(queries, roomUid, message_id)) return;
      insertMessage(queries, {
        ...{ room_uid: roomUid, seq: lastSeq(queries, roomUid) + 1, message_id, source: "agent" },
        ...{ destination: null, destinations: null, topic: null, kind: "event", payload: "1", payload_b64: null },
        ...{ size_bytes: 1, headers: {}, reply_to: null, ack_required: false, recipients: [] },
        ...{ fingerprint: "", created_at: now(), expires_at: null },
      });
    });
  }

  /** As sshkey_add and sshkey_delete do: each is a change of shared rows. */
  async grant(id: string): Promise<void> {
    this.#requireMember();
    const row = {
      ...{
        ssh_key_id: id as SshKeyId,
        org_id: ORG,
        name: id,
        algorithm: "ssh-ed25519",
        fingerprint: id,
        public_key: id,
      },
      ...{ created_at: now(), expires_at: null, created_by_type: "key", created_by_id: CALLER.key_id },
    };
    await this.cluster.database.commit((queries) => insertSshKey(queries, row));
  }

  async revoke(id: string): Promise<void> {
    this.#requireMember();
    await this.cluster.database.commit((queries) => {
      if (!deleteSshKey(queries, ORG, id)) throw new ServiceError("key_not_found");
    });
  }

  #requireMember(): void {
    if (!this.cluster.isMember()) throw new ServiceError("not_a_member");
  }

  async #destroy(roomUid: RoomUid): Promise<void> {
    await this.database.commit((queries) => updateRoom(queries, roomUid, { state: "destroying", updated_at: now() }));
    await this.#end(roomUid);
  }

  /** Waits for an end that is under way. */
  #end(roomUid: RoomUid): Promise<void> {
    const ending = this.#ending.get(roomUid) ?? this.#endOnce(roomUid).finally(() => this.#ending.delete(roomUid));
    this.#ending.set(roomUid, ending);
    return ending;
  }

  async #endOnce(roomUid: RoomUid): Promise<void> {
    await this.#locks.end({ room_uid: roomUid, room_id: getRoom(this.queries, roomUid)?.room_id ?? "" });
    await retireDirectory(this.#rooms, roomUid);
    await this.#rooms.fabric.forget(roomUid);
    await this.database.commit((queries) => updateRoom(queries, roomUid, { state: "destroyed", updated_at: now() }));
    void this.cluster.release(roomUid);
  }

  async #move({ room_id, host }: Asked & { does: "move" }): Promise<Done> {
    const call = { ...CALL, audit: {} } as unknown as KeyCall;
    const [move] = this.#moves.operations as [Bound, ...Bound[]];
    const row = (await move.find(call, { room_id })) as RoomRow;
    const { body } = await move.run(call, { host }, row, undefined as never);
    const { to, epoch } = body as { to: string; epoch: number };
    return { host: to, room_uid: row.room_uid, epoch };
  }

  /** As a message is refused in the transaction that would keep it. */
  #requireOpen(roomUid: RoomUid): void {
    const paused = this.#paused.get(roomUid);
    if (paused) throw paused;
  }
}

export function messagesOf(queries: Queries, roomUid: RoomUid): string[] {
  const inOrder = "SELECT message_id FROM messages WHERE room_uid = ? ORDER BY seq";
  return rawQuery<{ message_id: string }>(
    queries,
    inOrder,
  )([rowsOf(queries, roomUid)]).map(({ message_id }) => message_id);
}
