/** One simulation: calls of clients to the hosts of a service, faults, and then rest. All of it follows from the seed. */
import { describeError, ServiceError } from "../../../daemon/core/service-error.ts";
import type { Asked, Daemon } from "./daemon.ts";
import { Faults } from "./faults.ts";
import type { Recorded } from "./postgres.ts";
import { atRest } from "./rest.ts";
import { Service } from "./service.ts";
import type { Pool } from "./sqlite.ts";
import { World } from "./world.ts";

/** Duration of calls and faults; leases are over after 20 s, so some simulations take longer than that. */
const ACTIVE_MS = { short: 8_000, return: 16_000, long: 34_000 };
type Duration = keyof typeof ACTIVE_MS;
/** Of all; the others are short. */
const SHARES = { long: 0.13, return: 0.12 };
const RETURN_AT_MS = 2_500;
/** Longer than any way back to rest. */
const REST_MS = 60_000;
const LOOK_MS = 3_000;
const CALL_EVERY_MS = 80;
/** At a host with news. */
const FOCUS_EVERY_MS = 15;
/** Of the long simulations, in which a lease is over. */
const SUCCESSION_SHARE = 0.6;
const FAULT_EVERY_MS = 1_000;
const NAMES = ["a", "b", "c", "d", "e"];
const KEYS = 6;

export interface Outcome {
  seed: number;
  hash: string;
  violations: string[];
  events: number;
  acknowledged: number;
  refused: number;
  faults: Record<string, number>;
}

export interface Options {
  seed: number;
  directory: string;
  pool: Pool;
  /** PostgreSQL has no faults. */
  isSteady: boolean;
  /** Called with each line of the trace. */
  trace?: (line: string) => void;
  /** Called at the end with all statements that PostgreSQL has carried out. */
  statements?: (hosts: readonly string[], recorded: readonly Recorded[]) => void;
}

export function simulate({ seed, directory, pool, isSteady, trace, statements }: Options): Outcome {
  const world = new World(seed, directory, trace !== undefined);
  const hosts = ["host-1", "host-2", "host-3"].slice(0, world.chance.whole(2, 3));
  const service = new Service(world, directory, pool, hosts);
  const duration = durationOf(world);
  const clients = new Clients(service);
  const faults = new Faults(service, isSteady);
  if (statements) service.server.recorded = [];
  try {
    for (const host of service.hosts) host.start();
    world.runUntil(1_000);
    clients.begin();
    faults.begin(FAULT_EVERY_MS);
    if (duration === "return") world.after(RETURN_AT_MS, null, () => faults.comeBackOld());
    if (duration === "long" && world.chance.next() < SUCCESSION_SHARE)
      world.after(world.chance.next() * 3_000, null, () => faults.succeed());
    world.runUntil(ACTIVE_MS[duration]);
    clients.end();
    world.trace("healed");
    faults.heal();
    rest(service);
  } finally {
    service.close();
    statements?.(hosts, service.server.recorded ?? []);
    for (const line of world.lines ?? []) trace?.(line);
  }
  const { hash, events } = world;
  return { seed, hash, violations: service.violations, events, ...clients.counts, faults: faults.counts };
}

function durationOf({ chance }: World): Duration {
  const at = chance.next();
  if (at < SHARES.long) return "long";
  return at < SHARES.long + SHARES.return ? "return" : "short";
}

/** Until all is as it must be, or has had the time for it. */
function rest(service: Service): void {
  const { world } = service;
  const until = world.now + REST_MS;
  for (;;) {
    world.runUntil(world.now + LOOK_MS);
    const wrong = service.violations.length === 0 ? atRest(service) : [];
    if (wrong.length === 0) return;
    if (world.now < until) continue;
    for (const violation of wrong) service.violate(violation);
    return;
  }
}

class Clients {
  readonly #service: Service;
  readonly counts = { acknowledged: 0, refused: 0 };
  #messages = 0;
  #keys = 0;
  #isOver = false;

  constructor(service: Service) {
    this.#service = service;
  }

  begin(): void {
    const { world } = this.#service;
    const meanMs = this.#focus ? FOCUS_EVERY_MS : CALL_EVERY_MS;
    world.after(world.chance.next() * 2 * meanMs, null, () => {
      if (this.#isOver) return;
      this.#one();
      this.begin();
    });
  }

  get #focus(): Service["hosts"][number] | null {
    const { focus, world } = this.#service;
    return focus && focus.until > world.now ? focus.host : null;
  }

  end(): void {
    this.#isOver = true;
  }

  #one(): void {
    const { hosts, world } = this.#service;
    const { chance } = world;
    const at = this.#focus ?? chance.pick(hosts);
    const room_id = chance.pick(NAMES);
    const host = chance.pick(hosts).member.host_id;
    const roll = chance.next();
    const ask = (request: Asked) => this.#ask(at, request);
    if (roll < 0.03) this.#key(at);
    else if (roll < 0.06) this.#repeat(at);
    else if (roll < 0.28) {
      const idempotency_key = `key ${chance.whole(0, KEYS)} ${room_id}`;
      ask({ does: "create", room_id, host, ...(chance.next() < 0.5 && { idempotency_key }) });
    } else if (roll < 0.7) ask({ does: "send", room_id, message_id: `m${this.#messages++}` });
    else if (roll < 0.75) ask({ does: "read", room_id });
    else if (roll < 0.95) ask({ does: "move", room_id, host });
    else ask({ does: "destroy", room_id });
  }

  /** Grants a key, or revokes one. */
  #key(at: Service["hosts"][number]): void {
    const { world, ledger } = this.#service;
    const [id] = ledger.granted;
    if (id !== undefined && world.chance.next() < 0.5) {
      ledger.granted.delete(id);
      this.#carryOut(at, `revoke ${id}`, async (daemon) => {
        await daemon.revoke(id);
        ledger.revokedOn(id, at);
      });
      return;
    }
    const made = `ssh_${this.#keys++}`;
    this.#carryOut(at, `grant ${made}`, async (daemon) => {
      await daemon.grant(made);
      ledger.granted.add(made);
    });
  }

  /** A call with an Idempotency-Key has made a room that has ended since, and is repeated at any host. */
  #repeat(at: Service["hosts"][number]): void {
    const { world, ledger } = this.#service;
    const made = ledger.repeatable;
    if (made.length > 0) this.#ask(at, { does: "create", host: at.member.host_id, ...world.chance.pick(made) });
  }

  #ask(at: Service["hosts"][number], request: Asked): void {
    this.#carryOut(at, `${request.does} ${request.room_id}`, async (daemon) => {
      const { host, room_uid, epoch } = await daemon.call(request);
      return `${host} ${room_uid} ${epoch}`;
    });
  }

  #carryOut(at: Service["hosts"][number], name: string, work: (daemon: Daemon) => Promise<string | undefined>): void {
    const { world, violate } = this.#service;
    const { daemon, process } = at;
    if (!daemon?.isOpen || !process?.isAlive) return;
    const label = `${name} at ${at.name}`;
    world.after(0, process, () => {
      work(daemon).then(
        (done) => {
          this.counts.acknowledged++;
          world.trace(`${label}: ${done ?? "done"}`);
        },
        (error: unknown) => {
          this.counts.refused++;
          const code = error instanceof ServiceError ? error.code : "internal";
          world.trace(`${label}: ${code}`);
          if (code === "internal") violate.call(this.#service, `${label} fails: ${describeError(error)}`);
        },
      );
    });
  }
}
