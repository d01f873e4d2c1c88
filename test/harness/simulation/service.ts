/** The simulated service: its hosts, their PostgreSQL and their network, the answers to clients, and violations. */
import type { RoomUid } from "../../../shared/ids.ts";
import { type Asked, type Done, MAX_ROOMS } from "./daemon.ts";
import { firstState, ORG } from "./first-state.ts";
import { SimulatedHost } from "./host.ts";
import { Ledger } from "./ledger.ts";
import { Network } from "./network.ts";
import { PostgresModel } from "./postgres.ts";
import type { Pool } from "./sqlite.ts";
import type { State } from "./state.ts";
import type { World } from "./world.ts";

/** Time after which an undisturbed host has the state of PostgreSQL: some beats and pulls. */
const KNOWN_AFTER_MS = 12_000;

export interface Placement {
  room_uid: RoomUid;
  room_id: string;
  host_id: string;
  epoch: number;
  contested_by: string | null;
}

export function placementsOf(state: State): Placement[] {
  return [...state.rows.values()].flatMap(({ tbl, row }) =>
    tbl === "placements" && row !== null ? [row as unknown as Placement] : [],
  );
}

const isGone = (state: State, hostId: string) =>
  (state.rows.get(`hosts ${JSON.stringify([hostId])}`)?.row as { state?: string } | null)?.state === "gone";

/** Whether a change moves a room, removes a row, or makes another daemon the member. */
function isNotable(before: State, after: State): boolean {
  for (const [id, { tbl, row }] of after.rows === before.rows ? [] : after.rows) {
    const was = before.rows.get(id)?.row;
    if (tbl === "placements" && row && was && (row as unknown as Placement).epoch > (was as unknown as Placement).epoch)
      return true;
    if (tbl === "ssh_keys" && row === null && was) return true;
  }
  for (const [id, { run }] of after.leases === before.leases ? [] : after.leases) {
    const was = before.leases.get(id)?.run;
    if (was && was !== run) return true;
  }
  return false;
}

export class Service {
  readonly world: World;
  readonly network: Network;
  readonly server: PostgresModel;
  readonly hosts: SimulatedHost[] = [];
  readonly ledger: Ledger;
  readonly violations: string[] = [];
  readonly directory: string;
  readonly pool: Pool;
  /** The directory and hosts have forgotten nothing: use is counted, calls and names are known. */
  isWhole = true;
  /** When PostgreSQL was away, or another, for the last time. */
  #disturbedAt = 0;
  #before: State;
  /** Directories directly before changes that one which is set back must not lose. */
  readonly notable: State[] = [];
  /** A host with news: clients call it more often for a while. */
  focus: { host: SimulatedHost; until: number } | null = null;

  constructor(world: World, directory: string, pool: Pool, hosts: readonly string[]) {
    this.world = world;
    this.directory = directory;
    this.pool = pool;
    this.network = new Network(world);
    this.server = new PostgresModel(world, firstState(hosts, world.wallMs));
    this.#before = this.server.state;
    this.server.onCommit = (...committed) => this.#committed(...committed);
    this.ledger = new Ledger(
      () => world.now,
      (violation) => this.violate(violation),
    );
    for (const name of hosts) this.add(name, { cluster_id: "cluster", host_id: name, incarnation: `of ${name}` });
  }

  add(name: string, member: SimulatedHost["member"]): SimulatedHost {
    const host = new SimulatedHost(this, name, member);
    this.hosts.push(host);
    return host;
  }

  /** The host of this name that others reach: of a host and its copy the member. */
  hostOf(hostId: string): SimulatedHost | undefined {
    const named = this.hosts.filter(({ member }) => member.host_id === hostId);
    return named.find((host) => host.isRunning && this.isHolder(host)) ?? named[0];
  }

  /** Whether PostgreSQL has its daemon as the host. */
  isHolder(host: SimulatedHost): boolean {
    return host.run !== null && this.server.state.leases.get(host.member.host_id)?.run === host.run;
  }

  violate(violation: string): void {
    this.world.trace(`VIOLATION ${violation}`);
    this.violations.push(`${this.world.now.toFixed(0)} ms: ${violation}`);
  }

  /** PostgreSQL was away. */
  disturb(): void {
    this.#disturbedAt = this.world.now;
  }

  /** The directory is as it was: it has lost later changes. */
  forget(state: State): void {
    this.isWhole = false;
    this.ledger.callsHold = false;
    this.disturb();
    this.server.becomes(state);
    this.#before = state;
  }

  destroys(request: Asked, done: Done): void {
    this.ledger.destroys(request, done);
  }

  /** A host has made a write durable. */
  accepted(request: Asked, done: Done, host: SimulatedHost): void {
    const isHolder = this.isHolder(host);
    const placed = this.server
      .stateAt(this.world.now - KNOWN_AFTER_MS)
      .rows.get(`placements ${JSON.stringify([done.room_uid])}`)?.row as Placement | null | undefined;
    this.ledger.accepted(request, done, host, isHolder, this.ledger.callsHold || (placed?.epoch ?? 0) > done.epoch);
    const since = this.world.now - KNOWN_AFTER_MS;
    if (Math.max(host.disturbedAt, this.#disturbedAt) > since) return;
    const was = this.#whyNot(this.server.stateAt(since), request, done, host);
    const is = this.#whyNot(this.server.state, request, done, host);
    if (was !== null && is !== null)
      this.violate(`${host.name} took a write for ${done.room_uid} (${request.room_id}), although ${is}`);
  }

  /** Why a write contradicts a state; null: it does not. */
  #whyNot({ leases, rows }: State, { room_id }: Asked, { room_uid, epoch }: Done, host: SimulatedHost): string | null {
    const { host_id } = host.member;
    const lease = leases.get(host_id);
    if (lease?.run !== host.run) return `it is no member: ${JSON.stringify(lease)}`;
    const placed = rows.get(`placements ${JSON.stringify([room_uid])}`)?.row as Placement | null | undefined;
    if (placed && placed.host_id !== host_id && placed.epoch > epoch)
      return `${placed.host_id} has the room in epoch ${placed.epoch}`;
    if (placed && placed.epoch === epoch && placed.contested_by !== null) return "two hosts have the room";
    const named = placed ? undefined : placementsOf({ rows } as State).find((each) => each.room_id === room_id);
    return named ? `${named.host_id} has a room of that name, ${named.room_uid}` : null;
  }

  /** `by` is the process of the session, `startedAtMs` the beginning of the transaction. */
  #committed(state: State, by: string, startedAtMs: number): void {
    for (const { member } of this.hosts) {
      const { host_id } = member;
      if (!isGone(state, host_id) || isGone(this.#before, host_id)) continue;
      const placed = placementsOf(this.#before).filter((each) => each.host_id === host_id);
      const rooms = placed.map(({ room_uid }) => room_uid);
      const here = this.hosts.flatMap((host) => (host.member.host_id === host_id ? [...host.rooms] : []));
      this.ledger.removeHost(host_id, this.isWhole ? rooms : [...rooms, ...here], this.isWhole);
    }
    if (isNotable(this.#before, state)) this.notable.push(this.#before);
    if (state.rows !== this.#before.rows)
      for (const { room_uid, epoch } of placementsOf(state)) this.ledger.placed(room_uid, epoch);
    this.#requireNoReturn(state, by, startedAtMs);
    this.#before = state;
    if (!this.isWhole) return;
    // The names of rooms that have ended are freed a moment later.
    const { rooms: known } = this.ledger;
    const rooms = placementsOf(state).filter(({ room_uid }) => !known.get(room_uid)?.mayBeDestroyed).length;
    if (rooms > MAX_ROOMS) this.violate(`${ORG} has ${rooms} rooms, and may have ${MAX_ROOMS}`);
  }

  /** A daemon that has heard that it is out beats no more, and changes nothing. */
  #requireNoReturn({ leases, changes }: State, by: string, startedAtMs: number): void {
    const host = this.hosts.find(({ process }) => process?.name === by);
    if (!host || host.outAt === null) return;
    const { host_id } = host.member;
    const lease = leases.get(host_id);
    if (lease?.run === host.run && lease !== this.#before.leases.get(host_id))
      this.violate(`${host.name} was out, and is a member again`);
    const startedAt = startedAtMs - (this.world.wallMs - Math.floor(this.world.now));
    if (changes !== this.#before.changes && host.outAt < startedAt)
      this.violate(`${host.name} is out, and has changed what hosts share`);
  }

  isGone(host: SimulatedHost): boolean {
    return isGone(this.server.state, host.member.host_id);
  }

  close(): void {
    for (const host of this.hosts) host.remove();
  }
}
