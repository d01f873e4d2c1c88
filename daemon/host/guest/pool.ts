/**
 * The warm pool: machines that are launched ahead of creation, have rehearsed their setup, and wait paused until a sandbox takes one. A
 * member carries the sandbox_id of its future sandbox, so that taking one renames nothing.
 */
import { rm } from "node:fs/promises";
import { newId, type SandboxId } from "../../../shared/ids.ts";
import { monotonicMs, startTimer, stopTimer } from "../../core/clock.ts";
import { unlessGivenUp } from "../../core/concurrency/published.ts";
import type { Paths } from "../../core/config/paths.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { isAlive } from "../process.ts";
import { endProcesses } from "./leftovers.ts";
import type { GuestHost, GuestImage } from "./plan.ts";
import { type Launched, launchGuest } from "./start.ts";
import { warmUp } from "./warm-up.ts";

/** Without KVM a rehearsal takes a core for a second; more in parallel would delay callers that create sandboxes. */
const FILL_AT_ONCE = 2;

/** A machine that is not ready by then, on a busy host, gets its whole share of the processors: its parts have deadlines. */
const LATE_MS = 3_000;
/** Share of the plugged memory that the guest's kernel uses for its list of pages. */
const PAGE_LIST_SHARE = 1 / 64;

/** Wanted number of waiting machines of one snapshot; numbers of several entries are added. */
export interface PoolTarget {
  image: GuestImage;
  /** Memory of each waiting machine, so that its sandbox need not be given it; less is acceptable. */
  memory_mib: number;
  size: number;
  /** Only while there is spare memory: sandboxes have priority. */
  isExtra: boolean;
}

export interface PoolDeps {
  paths: Paths;
  log: Log;
  host(): GuestHost;
}

/** The demand for machines, and the memory for them. */
export interface PoolDemand {
  /** Likely sources of the next sandboxes, the likeliest first. Machines of any other are ended. */
  wanted(): Promise<PoolTarget[]>;
  /** Resolves when no sandbox is being started, or after a while: callers that wait for one have priority. */
  whenNobodyStarts(): Promise<void>;
  /** Ends other uses of memory by the service, which have lower priority than sandboxes; resolves with whether there were any. */
  giveWay(): Promise<boolean>;
  /** Whether the host has memory for guests of these sizes, in addition to the existing ones. */
  hasMemoryFor(memoryMib: readonly number[]): boolean;
}

/** A machine that is ready, or still being launched. */
export interface WarmMachine {
  sandbox_id: SandboxId;
  image: GuestImage;
  memory_mib: number;
  /** Rejects if the machine could not be launched; no leftovers remain then. */
  launched: Promise<Launched>;
}

export class WarmPool {
  readonly #deps: PoolDeps;
  /** Null: no machines are launched yet. */
  #demand: PoolDemand | null = null;
  /** In order of readiness. */
  #members: WarmMachine[] = [];
  /** Machines that are ready. */
  readonly #ready = new WeakSet<WarmMachine>();
  /** Aborts the rehearsals in progress, by sandbox_id: taking or ending a machine does not wait for them. */
  readonly #rehearsals = new Map<string, AbortController>();
  /** Machines that are being ended to free memory. */
  readonly #leaving = new Set<Promise<void>>();
  readonly #lanes = new Set<Promise<void>>();
  readonly #closing = new AbortController();
  #closed = false;
  /** Wanted number of each independent of free memory, as of the last query. */
  #always: Sizes = new Map();

  constructor(deps: PoolDeps) {
    this.#deps = deps;
  }

  /** Machines are launched for this demand from now on. */
  serve(demand: PoolDemand): void {
    this.#demand = demand;
  }

  /**
   * A machine of this snapshot with at most `memory_mib`: a warm one, or one being launched, which is ready sooner than a new one would be.
   * Null if none exists. The caller starts or ends it, and then calls `refill`.
   */
  take(image: Pick<GuestImage, "snapshot_memory">, memory_mib: number): WarmMachine | null {
    const fitting = this.#members.filter((member) => isOf(member, { image, memory_mib }));
    const ready = fitting.filter((member) => this.#ready.has(member));
    const [taken] = (ready.length > 0 ? ready : fitting).sort((a, b) => b.memory_mib - a.memory_mib);
    if (taken) this.#remove(taken);
    return taken ?? null;
  }

  /** `size`: wanted machines, counting those for spare memory only while they exist. `ready`: machines that wait. */
  figures(): { size: number; ready: number } {
    const always = [...this.#always.values()].reduce((sum, { size }) => sum + size, 0);
    const extra = beyond(this.#members, this.#always).length;
    return { size: always + extra, ready: this.#members.filter((member) => this.#ready.has(member)).length };
  }

  /** Whether a machine of the pool has this sandbox_id. */
  holds(sandboxId: string): boolean {
    return this.#members.some((member) => member.sandbox_id === sandboxId);
  }

  /** Puts an unused machine back. */
  giveBack(member: WarmMachine): void {
    if (this.#closed) void this.#discard(member);
    else this.#members.unshift(member);
  }

  /** Ends extra machines until this much memory is free, if together they have it. Resolves once they have ended, with whether any did. */
  async makeRoom(memoryMib: number): Promise<boolean> {
    if (await this.#demand?.giveWay()) return true;
    const extras = beyond(this.#members, this.#always).reverse();
    if (memoryOf(extras) >= memoryMib) {
      for (let freed = 0; freed < memoryMib; ) {
        const member = extras.shift();
        if (!member) break;
        freed += memoryOf([member]);
        this.#remove(member);
        const left = this.#giveUp(member).finally(() => this.#leaving.delete(left));
        this.#leaving.add(left);
      }
    }
    const any = this.#leaving.size > 0;
    await Promise.allSettled(this.#leaving);
    return any;
  }

  /** Launches missing machines, in the background. */
  refill(): void {
    while (this.#demand && !this.#closed && this.#lanes.size < FILL_AT_ONCE) {
      const lane = this.#fill(this.#demand).catch((error: unknown) =>
        this.#deps.log.warn("failed to fill the warm pool", { error: describeError(error) }),
      );
      this.#lanes.add(lane);
      void lane.then(() => this.#lanes.delete(lane));
    }
  }

  /** Ends all members. */
  async close(): Promise<void> {
    this.#closed = true;
    this.#closing.abort();
    for (const rehearsal of this.#rehearsals.values()) rehearsal.abort();
    await Promise.all(this.#lanes);
    await Promise.all([...this.#members.splice(0).map((member) => this.#discard(member)), ...this.#leaving]);
  }

  async #fill(demand: PoolDemand): Promise<void> {
    while (true) {
      await unlessGivenUp(this.#closing.signal, demand.whenNobodyStarts()).catch(() => {});
      const wanted = await demand.wanted();
      this.#always = sizesOf(wanted.filter(({ isExtra }) => !isExtra));
      const stale = beyond(this.#members, sizesOf(wanted));
      for (const member of stale) this.#remove(member);
      await Promise.all(stale.map((member) => this.#discard(member)));
      const isMissing = (each: PoolTarget) => this.#members.filter((member) => isOf(member, each)).length < each.size;
      // Machines that are still being launched have priority.
      const coming = this.#members.filter((member) => !this.#ready.has(member));
      const fits = (each: PoolTarget) => demand.hasMemoryFor([...coming, each].map(usedBy));
      const missing = wanted.find((each) => isMissing(each) && (!each.isExtra || fits(each)));
      if (this.#closed || !missing) return;
      await this.#add(missing);
    }
  }

  async #add({ image, memory_mib }: PoolTarget): Promise<void> {
    const sandbox_id = newId("sbx");
    const launched = this.#launch(sandbox_id, image, memory_mib);
    const member: WarmMachine = { sandbox_id, image, memory_mib, launched };
    this.#members.push(member);
    try {
      const { parts } = await member.launched;
      this.#ready.add(member);
      parts.machine.process.exited.then(() => {
        if (this.#remove(member)) void this.#discard(member);
      });
    } catch (error) {
      this.#remove(member);
      throw error;
    }
  }

  async #launch(sandbox_id: SandboxId, image: GuestImage, memory_mib: number): Promise<Launched> {
    const paths = this.#deps.paths.sandbox(sandbox_id);
    const rehearsal = new AbortController();
    this.#rehearsals.set(sandbox_id, rehearsal);
    const awaited = new AbortController();
    const hurry = () => awaited.abort();
    rehearsal.signal.addEventListener("abort", hurry, { once: true });
    const late = startTimer(hurry, LATE_MS);
    const plan = { sandbox_id, image, paths, vcpu_count: image.snapshot_vcpus, memory_mib };
    let launched: Launched | undefined;
    try {
      const startedAt = monotonicMs();
      launched = await launchGuest(this.#deps.host(), plan, "snapshot", { awaited: awaited.signal });
      const launch_ms = Math.round(monotonicMs() - startedAt);
      await warmUp(launched.parts, rehearsal.signal);
      this.#deps.log.info("warm machine ready", {
        sandbox_id,
        memory_mib,
        launch_ms,
        ready_ms: Math.round(monotonicMs() - startedAt),
      });
      if (!isAlive(launched.parts.machine.process)) throw new Error("QEMU ended while its guest warmed up");
      return launched;
    } catch (error) {
      // Processes that joined for the rehearsal are ended too.
      if (launched) await endProcesses(paths);
      await launched?.end();
      await rm(plan.paths.directory, { recursive: true, force: true });
      throw error;
    } finally {
      stopTimer(late);
      this.#rehearsals.delete(sandbox_id);
    }
  }

  /** Whether it was there. */
  #remove(member: WarmMachine): boolean {
    const before = this.#members.length;
    this.#members = this.#members.filter((other) => other !== member);
    this.#rehearsals.get(member.sandbox_id)?.abort();
    return this.#members.length < before;
  }

  /** Does not wait for a machine that is still being launched. */
  async #giveUp(member: WarmMachine): Promise<void> {
    if (!this.#ready.has(member)) await endProcesses(this.#deps.paths.sandbox(member.sandbox_id));
    await this.#discard(member);
  }

  async #discard({ launched }: WarmMachine): Promise<void> {
    const machine = await launched.catch(() => null);
    await machine?.end();
    if (machine) await rm(machine.parts.plan.paths.directory, { recursive: true, force: true });
  }
}

/** Most memory that an unassigned machine uses, in MiB. */
function usedBy({ image: { hardware }, memory_mib }: Pick<WarmMachine, "image" | "memory_mib">): number {
  return hardware.base_memory_mib + Math.ceil((memory_mib - hardware.base_memory_mib) * PAGE_LIST_SHARE);
}

function memoryOf(members: readonly WarmMachine[]): number {
  return members.reduce((sum, member) => sum + usedBy(member), 0);
}

interface OfSnapshot {
  image: Pick<GuestImage, "snapshot_memory">;
  memory_mib: number;
}

/** By snapshot: the wanted number of machines and the maximum memory of each. */
type Sizes = ReadonlyMap<string | null, Pick<PoolTarget, "size" | "memory_mib">>;

const nameOf = ({ image }: Pick<OfSnapshot, "image">) => image.snapshot_memory;

/** Whether the machine is of that snapshot, and has at most that memory. */
function isOf(member: WarmMachine, target: OfSnapshot): boolean {
  return nameOf(member) === nameOf(target) && member.memory_mib <= target.memory_mib;
}

/** Machines with more memory than wanted, or in excess of the wanted number of their snapshot, the latest of each. */
function beyond(members: readonly WarmMachine[], sizes: Sizes): WarmMachine[] {
  const seen = new Map<string | null, number>();
  return members.filter((member) => {
    const most = sizes.get(nameOf(member));
    if (!most || member.memory_mib > most.memory_mib) return true;
    const count = (seen.get(nameOf(member)) ?? 0) + 1;
    seen.set(nameOf(member), count);
    return count > most.size;
  });
}

function sizesOf(targets: readonly PoolTarget[]): Sizes {
  const sizes = new Map<string | null, Pick<PoolTarget, "size" | "memory_mib">>();
  for (const each of targets) {
    const { size = 0, memory_mib = each.memory_mib } = sizes.get(nameOf(each)) ?? {};
    sizes.set(nameOf(each), { size: Math.max(size, each.size), memory_mib: Math.min(memory_mib, each.memory_mib) });
  }
  return sizes;
}
