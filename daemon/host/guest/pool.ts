/**
 * Owns the warm pool: machines that are launched ahead, have run long enough to be warm, and wait paused until a
 * sandbox takes one. A member carries the sandbox_id that its sandbox will have, so that taking one renames nothing.
 */
import { rm } from "node:fs/promises";
import { REHEARSED_LINE } from "../../../shared/agent-protocol/messages.ts";
import { newId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Paths } from "../../core/paths.ts";
import { within } from "../../core/published.ts";
import { describeError } from "../../core/service-error.ts";
import type { Machine } from "../machine/machine.ts";
import { isAlive } from "../process.ts";
import type { GuestHost, GuestImage } from "./plan.ts";
import { type Launched, launchGuest } from "./start.ts";

/** A guest that has not rehearsed by then is paused as it is. */
const REHEARSAL_DEADLINE_MS = 10_000;

export interface PoolDeps {
  size: number;
  paths: Paths;
  log: Log;
  host(): GuestHost;
  /** What the next sandbox is most likely to start from; null when nothing is worth launching ahead. */
  nextImage(): Promise<GuestImage | null>;
}

export class WarmPool {
  readonly #deps: PoolDeps;
  #members: Launched[] = [];
  #filling: Promise<void> | null = null;
  #closed = false;

  constructor(deps: PoolDeps) {
    this.#deps = deps;
  }

  /** A warm machine of this snapshot, or null. Whoever takes one starts or ends it, and then asks for a refill. */
  take(image: Pick<GuestImage, "snapshot_memory">): Launched | null {
    const index = this.#members.findIndex(({ parts }) => parts.plan.image.snapshot_memory === image.snapshot_memory);
    const [taken] = index < 0 ? [] : this.#members.splice(index, 1);
    return taken ?? null;
  }

  /** Puts an unused machine back. */
  giveBack(launched: Launched): void {
    if (this.#closed || !isAlive(launched.parts.machine.process)) void this.#discard(launched);
    else this.#members.push(launched);
  }

  /** Launches what is missing, one after another, in the background. */
  refill(): void {
    if (this.#closed || this.#filling) return;
    this.#filling = this.#fill()
      .catch((error: unknown) => this.#deps.log.warn("warm pool not filled", { error: describeError(error) }))
      .finally(() => {
        this.#filling = null;
      });
  }

  /** Ends all members. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#filling;
    await Promise.all(this.#members.splice(0).map((member) => this.#discard(member)));
  }

  async #fill(): Promise<void> {
    while (!this.#closed && this.#members.length < this.#deps.size) {
      const image = await this.#deps.nextImage();
      if (!image) return;
      const stale = this.#members.filter(({ parts }) => parts.plan.image.snapshot_memory !== image.snapshot_memory);
      this.#members = this.#members.filter((member) => !stale.includes(member));
      await Promise.all(stale.map((member) => this.#discard(member)));
      await this.#add(image);
    }
  }

  async #add(image: GuestImage): Promise<void> {
    const sandbox_id = newId("sbx");
    const plan = { sandbox_id, image, paths: this.#deps.paths.sandbox(sandbox_id), vcpu_count: 1 };
    const member = await launchGuest(this.#deps.host(), plan, "snapshot").catch(async (error: unknown) => {
      await rm(plan.paths.directory, { recursive: true, force: true });
      throw error;
    });
    try {
      await rehearse(member.parts.machine);
    } catch (error) {
      await this.#discard(member);
      throw error;
    }
    member.parts.machine.process.exited.then(() => {
      if (!this.#members.includes(member)) return;
      this.#members = this.#members.filter((other) => other !== member);
      void this.#discard(member);
    });
    // Closed meanwhile: whoever closes waits for this.
    if (this.#closed) await this.#discard(member);
    else this.#members.push(member);
  }

  async #discard(member: Launched): Promise<void> {
    await member.end();
    await rm(member.parts.plan.paths.directory, { recursive: true, force: true });
  }
}

/** Lets the guest run until it has gone through being set up once, and pauses it: what it ran is then translated. */
async function rehearse(machine: Machine): Promise<void> {
  const done = Promise.withResolvers<void>();
  let printed = "";
  machine.onConsole((bytes) => {
    printed = (printed + new TextDecoder().decode(bytes)).slice(-1024);
    if (printed.includes(REHEARSED_LINE)) done.resolve();
  });
  await machine.resume();
  await within(done.promise, REHEARSAL_DEADLINE_MS, "the rehearsal").catch(() => {});
  await machine.pause();
}
