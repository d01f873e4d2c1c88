/**
 * Limits the number of layers of a running guest's disk: each snapshot adds one. If there are many, all are merged into the top one, slowly
 * and while no snapshot is taken, and the guest keeps running.
 *
 *     begin ──few layers──▶ nothing
 *       └──many──▶ quiet for a while ─▶ QEMU copies ─▶ those in between are closed in QEMU ─▶ removed
 *     end   cancels it: a caller that saves the guest, adds a layer, or puts layers into its directory has exclusive access
 *           until the next begin
 *
 * A daemon that is killed leaves a job to QEMU; the daemon that adopts the guest finds it by its name, or finds its leftovers to remove.
 * Layers of snapshots stay theirs.
 */
import { basename, join } from "node:path";
import { doubled } from "../../../shared/backoff.ts";
import { pause, sleep } from "../../core/clock.ts";
import { within } from "../../core/concurrency/published.ts";
import { faultPoint } from "../../core/fault-points.ts";
import { describeError } from "../../core/service-error.ts";
import { freeBytes } from "../files/space.ts";
import { layersBelow, layersIn, tidyLayers } from "../images/layers.ts";
import { backingOf } from "../images/overlay.ts";
import type { Machine } from "../machine/machine.ts";
import { beginStream, cancelStream, closeLayers, hasStream, type Stream, streamEnded } from "../machine/stream.ts";
import { bytesOf } from "./saved-state.ts";
import type { GuestParts } from "./steps.ts";

/** Layers above this number are merged. */
const MAX_LAYERS = 16;
/** More than these are merged immediately and at full speed: QEMU lists each in every answer, which has a size limit. */
const MANY_LAYERS = 64;
const MIB = 1024 ** 2;
/** A tenth of a slow disk's write speed. */
const SLOWLY = 8 * MIB;
/** Since the last snapshot; doubled each time that a snapshot interrupts a merge, since the data copied by then is wasted. */
const QUIET_MS = { first: 20_000, most: 3_600_000 } as const;
/** Backoff after a failure. */
const AGAIN_MS = 600_000;
/** Longest time that callers wait for a merge that cannot be postponed. */
const PATIENCE_MS = 60_000;
/** On the host's disk: copied data exists twice for a while. */
const RESERVE_BYTES = 1024 * MIB;

export class Shortener {
  readonly #parts: GuestParts;
  readonly #machine: Machine;
  #over = new AbortController();
  #work: Promise<void> = Promise.resolve();
  #cancelled = 0;
  #isUrgent = false;

  constructor(parts: GuestParts, machine: Machine) {
    this.#parts = parts;
    this.#machine = machine;
  }

  /** From now on layers are merged if there are many. */
  begin(): void {
    if (this.#over.signal.aborted) this.#over = new AbortController();
    this.#work = this.#keepShort(this.#over.signal);
  }

  /** When this resolves nothing is merged or removed any more, until the next `begin`. Throws if QEMU does not release the layers. */
  async end(): Promise<void> {
    if (this.#isUrgent) await within(this.#work, PATIENCE_MS, "the merging of layers").catch(() => {});
    this.leave();
    await this.#work;
    if (await cancelStream(this.#machine.qmp)) this.#cancelled++;
  }

  /** The guest ends, and its QEMU with it: no merge is started any more. */
  leave(): void {
    this.#over.abort();
  }

  /** Resolves once layers are few, or on cancellation. */
  async #keepShort(signal: AbortSignal): Promise<void> {
    for (let isLong = true; isLong; ) {
      try {
        isLong = await this.#shorten(signal);
      } catch (error) {
        if (signal.aborted) return;
        this.#isUrgent = false;
        this.#log.warn("failed to merge layers", { error: describeError(error) });
        await pause(AGAIN_MS, signal);
      }
    }
  }

  /** False if there are few layers. */
  async #shorten(signal: AbortSignal): Promise<boolean> {
    const { qmp } = this.#machine;
    const { directory } = this.#parts.plan.paths;
    signal.throwIfAborted();
    if (!(await hasStream(qmp))) {
      if (layersIn(directory).length <= MAX_LAYERS) return false;
      const layers = await this.#tidy();
      const pace = paceOf(layers.length, doubled(QUIET_MS, this.#cancelled));
      this.#isUrgent = pace?.bytes_per_second === 0;
      if (pace === null) return false;
      await sleep(pace.wait_ms, signal);
      requireSpace(directory, layers);
      await beginStream(qmp, await this.#streamOf(layers, pace.bytes_per_second));
      this.#log.info("layers are being merged", { layers: layers.length });
    }
    const failure = await streamEnded(qmp, signal);
    if (failure !== null) throw new Error(failure);
    await faultPoint("layers.merged");
    const { length } = await this.#tidy();
    this.#cancelled = 0;
    this.#log.info("layers are merged", { layers: length });
    return true;
  }

  /** Removes the layers that are no longer below the disk, and returns the others. First QEMU closes them: else they keep their space. */
  async #tidy(): Promise<string[]> {
    const { directory } = this.#parts.plan.paths;
    await closeLayers(this.#machine.qmp, await this.#machine.diskNode());
    const top = basename(await this.#machine.disk());
    await tidyLayers(directory, top);
    return layersBelow(directory, top);
  }

  async #streamOf(layers: readonly string[], bytes_per_second: number): Promise<Stream> {
    const { directory } = this.#parts.plan.paths;
    const backing = backingOf(join(directory, layers.at(-1) ?? ""));
    if (backing === null) throw new Error("the guest's disk has no backing file");
    return { top: await this.#machine.diskNode(), base: { file: join(directory, backing), backing }, bytes_per_second };
  }

  get #log() {
    const { host, plan } = this.#parts;
    return host.log.with({ sandbox_id: plan.sandbox_id });
  }
}

/** Delay and speed of merging this many layers; null if they are few. Pure. */
export function paceOf(layers: number, quietMs: number): { wait_ms: number; bytes_per_second: number } | null {
  if (layers <= MAX_LAYERS) return null;
  if (layers <= MANY_LAYERS) return { wait_ms: quietMs, bytes_per_second: SLOWLY };
  return { wait_ms: 0, bytes_per_second: 0 };
}

/** Requires space for all data that may be copied. */
function requireSpace(directory: string, [, ...below]: readonly string[]): void {
  const bytes = below.reduce((sum, layer) => sum + bytesOf(join(directory, layer)), 0);
  if (bytes + RESERVE_BYTES > freeBytes(directory)) throw new Error("the host's disk has no space for a copy of them");
}
