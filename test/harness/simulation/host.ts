/** A simulated host: its disk, which outlives its daemons, and the daemon that runs, if one does. */
import { mkdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import type { Host } from "../../../daemon/cluster/directory.ts";
import { writeMembership } from "../../../daemon/cluster/member-file.ts";
import type { Member, MembershipLock } from "../../../daemon/cluster/membership-lock.ts";
import { ConfigError } from "../../../daemon/core/config/config.ts";
import type { Log, LogFields } from "../../../daemon/core/log.ts";
import { describeError, ServiceError } from "../../../daemon/core/service-error.ts";
import type { Peers } from "../../../daemon/domain/rooms/deps.ts";
import { liveRooms } from "../../../daemon/domain/rooms/index.ts";
import type { RoomUid } from "../../../shared/ids.ts";
import { type Asked, Daemon, type Done } from "./daemon.ts";
import { Disk } from "./disk.ts";
import type { Network } from "./network.ts";
import type { PostgresModel } from "./postgres.ts";
import { openingOf } from "./session.ts";
import type { Pool } from "./sqlite.ts";
import { Process, type World } from "./world.ts";

/** Time after which a silent host is not waited for. */
const SILENT_MS = 3_000;
/** After an end for its configuration, as a service manager starts it again. */
const AGAIN_MS = 5_000;
const SEND_MS = 60_000;
const SETTLE_MS = 30_000;

export interface Surroundings {
  world: World;
  network: Network;
  server: PostgresModel;
  /** Of all disks. */
  directory: string;
  pool: Pool;
  hostOf(hostId: string): SimulatedHost | undefined;
  destroys(request: Asked, done: Done): void;
  accepted(request: Asked, done: Done, host: SimulatedHost): void;
  violate(violation: string): void;
}

export class SimulatedHost {
  /** In the network, which has copies of a host under names of their own. */
  readonly name: string;
  readonly member: Member;
  readonly #around: Surroundings;
  readonly disk: Disk;
  process: Process | null = null;
  daemon: Daemon | null = null;
  aheadMs = 0;
  /** Of its daemon; null: none was started. */
  run: string | null = null;
  /** When it was cut off, paused or started for the last time. */
  disturbedAt = 0;
  isCopy = false;
  /** Time at which its daemon learned of another member with its data. */
  outAt: number | null = null;
  /** It does not start any more. */
  isRetired = false;
  /** Of rooms that its database has again. */
  #lacksDrives = false;
  #lives = 0;
  #rooms: ReadonlySet<RoomUid> = new Set();

  constructor(around: Surroundings, name: string, member: Member) {
    this.#around = around;
    this.name = name;
    this.member = member;
    this.disk = new Disk(join(around.directory, name), around.pool);
    writeMembership(this.disk.cluster, member);
  }

  get isRunning(): boolean {
    return this.daemon !== null && this.process?.isAlive === true;
  }

  disturb(): void {
    this.disturbedAt = this.#around.world.now;
  }

  stepClock(aheadMs: number): void {
    this.aheadMs = aheadMs;
    if (this.process) this.process.aheadMs = aheadMs;
  }

  start(): void {
    if (this.process?.isAlive || this.isRetired) return;
    const { world } = this.#around;
    this.disturb();
    const life = new Process(`${this.name}/${this.#lives++}`);
    life.aheadMs = this.aheadMs;
    this.process = life;
    this.disk.flush(world.now, this.disk.logBytes);
    world.trace(`${life.name} starts`);
    world.turn(life, () => {
      const daemon = this.#make(life);
      this.daemon = daemon;
      daemon.start().catch((error: unknown) => {
        if (!(error instanceof ConfigError))
          this.#around.violate(`${life.name} does not start: ${describeError(error)}`);
        world.trace(`${life.name} refuses to start`);
        world.after(0, null, () => {
          if (this.process === life) this.end("crash");
          world.after(AGAIN_MS, null, () => this.start());
        });
      });
    });
  }

  /** Ends the daemon. A loss of power leaves the durable part of its log, another end all of it. */
  end(how: "crash" | "power"): void {
    if (!this.process?.isAlive) return;
    const { world } = this.#around;
    world.trace(`${this.process.name} ends: ${how}`);
    this.process.kill();
    this.#become(how === "power" ? this.disk.durableBytes : this.disk.logBytes);
  }

  /** Rooms that its database has, or had when its last daemon ended. */
  get rooms(): ReadonlySet<RoomUid> {
    if (this.daemon) this.#rooms = new Set(liveRooms(this.daemon.queries).map(({ room_uid }) => room_uid));
    return this.#rooms;
  }

  #become(bytes: number): void {
    void this.rooms;
    this.daemon?.closeFile();
    this.daemon = null;
    this.disk.cut(bytes);
  }

  /** Its disk is as it was at a moment or before, which is returned: as from a snapshot of its volume. It does not run. */
  setBack(at: number): number {
    const { flushed } = this.disk;
    const to = flushed.findLast((each) => each.at <= at) ?? { at: 0, bytes: 0 };
    this.#become(to.bytes);
    for (const files of ["arriving", "rooms", "retired"]) {
      rmSync(join(this.disk.data, files), { recursive: true, force: true });
    }
    mkdirSync(join(this.disk.data, "rooms"));
    this.#lacksDrives = true;
    return to.at;
  }

  /** Has a copy of another host's disk as it is now, and runs. */
  becomeCopyOf(other: SimulatedHost): void {
    this.isCopy = true;
    this.disk.copy(other.disk);
    this.start();
  }

  /** It is a host no more: of two with the same data the other is. */
  retire(): void {
    this.end("crash");
    this.isRetired = true;
  }

  remove(): void {
    this.process?.kill();
    this.daemon?.closeFile();
    this.daemon = null;
    this.disk.remove();
  }

  #make(life: Process): Daemon {
    const { world, network, server } = this.#around;
    const { disk } = this;
    const { chance } = world;
    this.run = crypto.randomUUID();
    this.outAt = null;
    const lacksDrives = this.#lacksDrives;
    this.#lacksDrives = false;
    return new Daemon({
      file: disk.database,
      member: this.member,
      holder: this.#holderOf(this.run),
      flushes: {
        sync: () => {
          const bytes = disk.logBytes;
          if (chance.next() < 0.7) {
            disk.flush(world.now, bytes);
            return null;
          }
          const ms = chance.next() < 0.03 ? chance.next() * 1_500 : 0.5 + chance.next() * 20;
          return new Promise((resolve) => {
            world.after(ms, life, () => {
              disk.flush(world.now, bytes);
              resolve();
            });
          });
        },
        close: () => {},
      },
      ...{ data: disk.data, lacksDrives, peers: this.#peersOf(life) },
      open: openingOf(world, network, server, this.name, life),
      log: logOf(world),
      forward: (host, request) => this.#forward(life, host, request),
      destroys: (request, done) => this.#around.destroys(request, done),
      accepted: (request, done) => this.#around.accepted(request, done, this),
    });
  }

  #holderOf(run: string): MembershipLock {
    const markOut = () => {
      this.outAt ??= this.#around.world.now;
    };
    let isOut = false;
    return {
      ...{ run, place: this.name, acknowledged: null, attempted: null },
      get isOut() {
        return isOut;
      },
      set isOut(is: boolean) {
        isOut = is;
        if (is) markOut();
      },
    };
  }

  #forward(life: Process, host: Host, request: Asked): Promise<Done> {
    return this.#ask(life, host, SILENT_MS, (daemon) => daemon.call(request, true));
  }

  #peersOf(life: Process): Peers {
    const { chance } = this.#around.world;
    return {
      send: async (host, roomUid, file, over) => {
        const pieces: Uint8Array[] = [];
        for await (const piece of file) pieces.push(piece.slice());
        over.throwIfAborted();
        const endSignal = new AbortController().signal;
        return await this.#ask(life, host, SEND_MS, ({ forPeers }) =>
          forPeers.receive(roomUid, all(pieces), endSignal),
        );
      },
      fits: () => Promise.resolve({ missing: [], refused: [] }),
      settle: (host, roomUid, over) => {
        const settle = () => this.#ask(life, host, SETTLE_MS, ({ forPeers }) => forPeers.settle(roomUid), over);
        // An earlier call arrives late.
        if (chance.next() < 0.1) this.#around.world.after(chance.next() * 20_000, life, () => settle().catch(() => {}));
        return settle();
      },
    };
  }

  /** Has the daemon of another host do something; rejects as that does, and with host_unreachable. */
  #ask<T>(
    life: Process,
    { host_id }: Host,
    withinMs: number,
    work: (daemon: Daemon) => Promise<T>,
    over?: AbortSignal,
  ): Promise<T> {
    const { world, network } = this.#around;
    const { promise, resolve, reject } = Promise.withResolvers<T>();
    const refuse = () => reject(new ServiceError("host_unreachable"));
    const other = this.#around.hostOf(host_id);
    if (!other) throw new ServiceError("host_unreachable");
    world.after(withinMs, life, refuse);
    over?.addEventListener("abort", refuse);
    network.send(this.name, other.name, null, () => {
      const { daemon, process } = other;
      const back = (answer: () => void) => network.send(other.name, this.name, life, answer);
      if (!daemon?.isOpen || !process?.isAlive) return back(refuse);
      world.after(0, process, () => {
        work(daemon).then(
          (done) => back(() => resolve(done)),
          (error: unknown) => back(() => reject(error)),
        );
      });
    });
    return promise;
  }
}

async function* all(pieces: readonly Uint8Array[]): AsyncGenerator<Uint8Array> {
  yield* pieces;
}

export function logOf(world: World): Log {
  const at = (level: string) => (message: string, fields?: LogFields) =>
    world.trace(`${level} ${message} ${JSON.stringify(fields ?? {})}`);
  const log: Log = { debug: () => {}, info: () => {}, warn: at("warn"), error: at("error"), with: () => log };
  return log;
}
