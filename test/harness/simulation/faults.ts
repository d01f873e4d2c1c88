/** Faults of hosts, their network and PostgreSQL in a simulation, chosen by its seed. Each ends automatically, or with `heal`. */
import type { SimulatedHost } from "./host.ts";
import { removeHost } from "./operator.ts";
import { placementsOf, type Service } from "./service.ts";
import { DATABASE } from "./session.ts";

const HOUR_MS = 3_600_000;

/** How often each comes, relative to the others. */
const WEIGHTS = {
  ...{ kill: 4, power: 3, pause: 4, cut: 6, clock: 1, away: 1, failover: 1, setBackDirectory: 1, setBackHost: 1 },
  ...{ clone: 0.5, remove: 0.3 },
} as const;
type Fault = keyof typeof WEIGHTS;

const OF_POSTGRES: readonly Fault[] = ["failover", "setBackDirectory"];

/** Until a room has moved. */
const AGAIN_MS = 250;
/** A host that does not reach PostgreSQL has started by then. */
const START_MS = 5_600;
/** Of old disks; the directory is as old. */
const FORGOTTEN_SHARE = 0.4;
/** Of calls at a host with news. */
const FOCUS_MS = 3_000;
/** A lease, and the beats of a copy that waits for its end. */
const LEASE_MS = 22_500;
/** Longer than between two beats. */
const BEAT_MS = 3_500;

/** Until an operator restarts a daemon that is out. */
const RESTART_MS = 5_000;

/** Of COMMITs, some are done and never answered, or never done. */
const LOST_COMMITS = 0.004;

export class Faults {
  readonly #service: Service;
  readonly counts: Partial<Record<Fault | "commit", number>> = {};
  #isOver = false;
  readonly #once = new Set<Fault>();
  /** Hosts that have no other faults for now. */
  readonly #reserved = new Set<SimulatedHost>();
  /** When the data of a member were first copied; a copy may be copied again. */
  readonly #copiedAt = new Map<string, number>();

  constructor(service: Service, isSteady: boolean) {
    this.#service = service;
    if (isSteady) for (const fault of OF_POSTGRES) this.#once.add(fault);
    const { chance } = service.world;
    service.server.commitFault = () => {
      if (this.#isOver || chance.next() > LOST_COMMITS) return null;
      this.counts.commit = (this.counts.commit ?? 0) + 1;
      return chance.pick(["before", "after"] as const);
    };
  }

  /** From now on they come, each a while after the previous one. */
  begin(meanMs: number): void {
    const { world } = this.#service;
    world.after(world.chance.next() * 2 * meanMs, null, () => {
      if (this.#isOver) return;
      this.#one();
      this.begin(meanMs);
    });
  }

  #one(): void {
    const { world } = this.#service;
    const { chance } = world;
    const hosts = this.#service.hosts.filter((each) => !this.#reserved.has(each));
    if (hosts.length === 0) return;
    const host = chance.pick(hosts);
    const forMs = chance.next() < 0.2 ? chance.next() * 12_000 : chance.next() * 1_500;
    const fault = this.#pick();
    world.trace(`fault: ${fault} ${host.name} ${forMs.toFixed(0)}`);
    this.counts[fault] = (this.counts[fault] ?? 0) + 1;
    this.#faults[fault](host, forMs);
  }

  #pick(): Fault {
    const all = Object.entries(WEIGHTS).filter(([fault]) => !this.#once.has(fault as Fault)) as [Fault, number][];
    let left = this.#service.world.chance.next() * all.reduce((sum, [, weight]) => sum + weight, 0);
    for (const [fault, weight] of all) {
      left -= weight;
      if (left < 0) return fault;
    }
    return "kill";
  }

  readonly #faults: Record<Fault, (host: SimulatedHost, forMs: number) => void> = {
    kill: (host, forMs) => this.#end(host, "crash", forMs),
    power: (host, forMs) => this.#end(host, "power", forMs),
    pause: (host, forMs) => this.#pause(host, forMs),
    cut: (host, forMs) => this.#cut(host, forMs),
    clock: (host) => {
      const { chance } = this.#service.world;
      host.stepClock(chance.pick([-HOUR_MS, HOUR_MS, 0]));
    },
    away: (_, forMs) => {
      const { server } = this.#service;
      server.isDown = true;
      server.endSessions("57P01");
      this.#later(forMs, () => this.#bringBack());
    },
    failover: () => {
      const { server, world } = this.#service;
      const { history } = server;
      const lost = world.chance.whole(1, 4);
      const last = history[Math.max(0, history.length - 1 - lost)];
      if (last) this.#service.forget(last.state);
    },
    setBackDirectory: () => {
      const { server, world } = this.#service;
      const { notable } = this.#service;
      if (notable.length > 0 && world.chance.next() < 0.5) this.#service.forget(world.chance.pick(notable.slice(-6)));
      else this.#service.forget(server.stateAt(world.now - world.chance.next() * 15_000));
    },
    setBackHost: (host, forMs) => this.#setBack(host, forMs),
    clone: (host) => {
      this.#once.add("clone");
      this.#copiedAt.set(host.member.host_id, this.#firstCopyOf(host) ?? this.#service.world.now);
      this.#service.add(`${host.name}-copy`, host.member).becomeCopyOf(host);
    },
    remove: (host) => {
      this.#once.add("remove");
      const others = this.#service.hosts.filter(
        ({ member, isRunning }) => member.host_id !== host.member.host_id && isRunning,
      );
      if (others.length > 0) removeHost(this.#service, host.member.host_id, this.#service.world.chance.pick(others));
    },
  };

  #firstCopyOf({ member }: SimulatedHost): number | undefined {
    return this.#copiedAt.get(member.host_id);
  }

  #later(ms: number, end: () => void): void {
    this.#service.world.after(ms, null, () => this.#isOver || end());
  }

  #end(host: SimulatedHost, how: "crash" | "power", forMs: number): void {
    host.end(how);
    this.#later(forMs, () => host.start());
  }

  #resume(host: SimulatedHost, process: SimulatedHost["process"]): void {
    if (!process?.isPaused) return;
    host.disturb();
    this.#service.world.resume(process);
  }

  /** From PostgreSQL or another host, in one direction or both. */
  #cut(host: SimulatedHost, forMs: number): void {
    const { network, hosts, world } = this.#service;
    const { chance } = world;
    const others = hosts.filter((each) => each !== host).map(({ name }) => name);
    const other = chance.next() < 0.7 || others.length === 0 ? DATABASE : chance.pick(others);
    const ways = chance.pick(["out", "in", "both"]);
    if (ways !== "in") network.cut(host.name, other);
    if (ways !== "out") network.cut(other, host.name);
    this.#later(forMs, () => this.#healNetwork());
  }

  #healNetwork(): void {
    for (const host of this.#service.hosts) host.disturb();
    this.#service.network.heal();
  }

  #bringBack(): void {
    this.#service.server.isDown = false;
    this.#service.disturb();
  }

  /** Its disk is as it was some seconds ago. */
  #setBack(host: SimulatedHost, forMs: number): void {
    const { world } = this.#service;
    host.end("crash");
    const to = host.setBack(Math.max(0, world.now - 500 - world.chance.next() * 12_000));
    this.#setBackLedger(host, to);
    this.#later(forMs, () => host.start());
  }

  /**
   * A host starts on its disk from before a room left it, without PostgreSQL. With the connection it learns of the move, while clients call.
   * In a part of these cases the directory is set back to the same time, and the other host repeats the epoch.
   */
  comeBackOld(): void {
    const { world, hosts, server, ledger } = this.#service;
    const { chance } = world;
    const former = hosts.filter((host) => ledger.hadAt(host.name).length > 0 && host.isRunning);
    if (former.length === 0) {
      this.#later(AGAIN_MS, () => this.comeBackOld());
      return;
    }
    const host = chance.pick(former);
    world.trace(`fault: an old disk of ${host.name}`);
    this.#reserved.add(host);
    host.end("crash");
    const { room_uid, at } = chance.pick(ledger.hadAt(host.name));
    this.#setBackLedger(host, host.setBack(at));
    const isForgotten = chance.next() < FORGOTTEN_SHARE;
    const before = server.history.findLast(({ state }) =>
      placementsOf(state).some((each) => each.room_uid === room_uid && each.host_id === host.member.host_id),
    );
    if (isForgotten && before) this.#service.forget(before.state);
    server.isDown = true;
    server.endSessions("57P01");
    host.start();
    this.#later(START_MS, () => {
      this.#bringBack();
      if (!isForgotten) this.#service.focus = { host, until: world.now + FOCUS_MS };
      this.#later(FOCUS_MS, () => this.#reserved.delete(host));
    });
  }

  /**
   * A host is paused until its copy is the member, and resumes: its daemon is out. Then the directory is set back to before the copy's first beat, and
   * the host beats first.
   */
  succeed(): void {
    const { world, hosts, server } = this.#service;
    const { chance } = world;
    const host = chance.pick(hosts);
    const { process } = host;
    if (!process?.isAlive || process.isPaused) return;
    world.trace(`fault: a successor of ${host.name}`);
    this.#faults.clone(host, 0);
    const copy = hosts.at(-1) as SimulatedHost;
    for (const each of [host, copy]) this.#reserved.add(each);
    process.isPaused = true;
    this.#later(LEASE_MS, () => {
      const mine = server.history.findLast(({ state }) => state.leases.get(host.member.host_id)?.run === host.run);
      this.#resume(host, process);
      this.#later(BEAT_MS + chance.next() * 1_000, () => {
        if (mine) this.#service.forget(mine.state);
        this.#forked(host, copy);
        if (copy.process?.isAlive) this.#pause(copy, BEAT_MS + 1_000);
        for (const each of [host, copy]) this.#reserved.delete(each);
      });
    });
  }

  /** Either of the two continues as the host; writes of the other since the copy are lost. */
  #forked(host: SimulatedHost, copy: SimulatedHost): void {
    const { ledger } = this.#service;
    const here = host.rooms;
    ledger.lose(
      ({ room_uid, writers }) => here.has(room_uid) || [...writers.values()].some(({ data }) => data === copy.name),
      `${copy.name} was forgotten`,
    );
    ledger.setBack(copy.name, this.#firstCopyOf(copy) ?? 0, new Set());
  }

  #pause(host: SimulatedHost, forMs: number): void {
    const { process } = host;
    if (!process?.isAlive || process.isPaused) return;
    process.isPaused = true;
    this.#later(forMs, () => this.#resume(host, process));
  }

  /** Of a host and its copy the other one continues: later writes of this one are lost. */
  #retire(host: SimulatedHost): void {
    host.retire();
    this.#setBackLedger(host, this.#firstCopyOf(host) ?? 0);
  }

  #setBackLedger(host: SimulatedHost, to: number): void {
    const { host_id } = host.member;
    this.#service.isWhole = false;
    const placed = placementsOf(this.#service.server.state).filter((each) => each.host_id === host_id);
    const rooms = new Set([...placed.map(({ room_uid }) => room_uid), ...host.rooms]);
    this.#service.ledger.setBack(host.name, to, rooms);
  }

  /** All is well from here on. Of a host and its copy one continues. */
  heal(): void {
    this.#isOver = true;
    this.#bringBack();
    this.#healNetwork();
    const { hosts } = this.#service;
    for (const host of hosts) if (host.process?.isPaused) this.#resume(host, host.process);
    for (const host of hosts) {
      const others = hosts.filter((each) => each !== host && each.member.host_id === host.member.host_id);
      const goesOn = others.every(
        (other) => this.#service.isHolder(host) || (!this.#service.isHolder(other) && !host.isCopy),
      );
      if (!goesOn) {
        this.#retire(host);
        continue;
      }
      this.#restartIfOut(host);
      host.start();
      // A beat of the copy was under way, and has made it the member since.
      if (others.length > 0) this.#service.world.after(RESTART_MS, null, () => this.#restartIfOut(host));
    }
  }

  /** A daemon that is out is restarted by its operator. */
  #restartIfOut(host: SimulatedHost): void {
    if (host.outAt === null) return;
    host.end("crash");
    host.start();
  }
}
