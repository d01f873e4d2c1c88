/**
 * Sidecars of a guest's QEMU while it runs: detects when one exits, has it replaced, and publishes the fault in the meantime.
 *
 *     whole ──virtiofsd dies──▶ drive degraded ──another is mounted──▶ whole
 *                                    └──no port remains──▶ degraded permanently
 *     whole ──vsock device dies──▶ unreachable ──the agent dials over another──▶ whole
 *
 * Nothing is replaced in a guest that is ending: `end` comes before its sidecars are ended.
 */

import { backoffMs } from "../../../shared/backoff.ts";
import { monotonicMs, sleep } from "../../core/clock.ts";
import { Published, unlessGivenUp } from "../../core/concurrency/published.ts";
import { describeError } from "../../core/service-error.ts";
import type { VsockEndpoint } from "../guest-link/transports/transport.ts";
import { isAlive, type KnownProcess } from "../process.ts";
import { endOf } from "../process-end.ts";
import { NoPortError, replaceVirtiofsd } from "./replace-virtiofsd.ts";
import { hasLostVsock, replaceVsock } from "./replace-vsock.ts";
import type { GuestParts } from "./steps.ts";

/** Backoff between retries: a transient failure may be over soon, and a permanent one must not cost much. */
const RETRY_MS = { first: 250, most: 10_000 } as const;
/** A device that dies again within this time is replaced more slowly each time: its guest may be killing it. */
const QUIET_MS = 60_000;
const QEMU_ANSWER_MS = 2_000;
const AGENT_DEADLINE_MS = 30_000;
/** Message of a drive that remains degraded. */
export const DRIVE_LOST =
  "The process that serves the drive ended too often, so /mnt/drive does not come back in this sandbox. Its files are safe in the room: destroy the sandbox and create it again to use them.";

export interface Fault {
  reason: "drive_degraded" | "vsock_lost";
  /** For people. */
  message: string;
}

/** Faults of a running guest; null if absent. */
export interface Health {
  drive: Fault | null;
  vsock: Fault | null;
}

export class Sidecars {
  readonly health = new Published<Health>({ drive: null, vsock: null });
  readonly #parts: GuestParts;
  #over = new AbortController();
  #work: Promise<unknown> = Promise.resolve();
  #renewing: Promise<void> | null = null;

  constructor(parts: GuestParts) {
    this.#parts = parts;
  }

  /** From now on each sidecar that has exited or exits is replaced; may be called again after `end`. */
  begin(): void {
    if (this.#isOver) this.#over = new AbortController();
    const { host, plan } = this.#parts;
    const reported = (work: Promise<void>) =>
      work.catch((error: unknown) => {
        if (this.#isOver) return;
        host.log.error("failed to keep watching sidecars", {
          sandbox_id: plan.sandbox_id,
          error: describeError(error),
        });
      });
    this.#work = Promise.all([reported(this.#keepDrive()), reported(this.#keepVsock())]);
  }

  /** Gives a guest that was just resumed a working vsock device. Throws if it cannot have one. */
  async ensureVsock(signal: AbortSignal): Promise<void> {
    if (this.#renewing || hasLostVsock(this.#parts)) await this.#renewVsock(signal);
  }

  /** Ends the replacement of sidecars; resolves when none is being started. Idempotent. */
  async end(): Promise<void> {
    this.#over.abort();
    await Promise.allSettled([this.#work, this.#renewing]);
  }

  get #isOver(): boolean {
    return this.#over.signal.aborted;
  }

  async #keepDrive(): Promise<void> {
    const parts = this.#parts;
    while (parts.share) {
      const how = parts.record.now.drive.mounted ? await this.#ended(parts.share) : "not mounted";
      if (await this.#guestHasEnded()) return;
      this.#note({
        drive: {
          reason: "drive_degraded",
          message: `The process that serves the drive has ended (${how}). Commands that use /mnt/drive wait or fail until it is back; others run.`,
        },
      });
      const renewed = await this.#untilDone("drive", () => replaceVirtiofsd(parts, this.#over.signal));
      if (!renewed) return;
      this.#note({ drive: null });
    }
  }

  async #keepVsock(): Promise<void> {
    const parts = this.#parts;
    let attempt = 0;
    for (let renewedAt = 0; parts.endpoint?.process; renewedAt = monotonicMs()) {
      const { endpoint } = parts;
      const how = await this.#ended(parts.endpoint.process);
      // Replaced on purpose: the new process runs, or is being started.
      await this.#renewing?.catch(() => {});
      if (parts.endpoint !== endpoint) continue;
      if (await this.#guestHasEnded()) return;
      this.#note({
        vsock: {
          reason: "vsock_lost",
          message: `The guest's vsock device has ended (${how}). The guest cannot be reached until it is replaced.`,
        },
      });
      if (monotonicMs() - renewedAt > QUIET_MS || renewedAt === 0) attempt = 0;
      else await this.#pause(attempt++);
      await this.#untilDone("vsock device", () => this.#replaceVsock(endpoint));
      this.#note({ vsock: null });
    }
  }

  async #replaceVsock(dead: VsockEndpoint): Promise<void> {
    const { machine, connection } = this.#parts;
    const { signal } = this.#over;
    await machine?.running(signal);
    if (this.#parts.endpoint === dead || hasLostVsock(this.#parts)) await this.#renewVsock(signal);
    try {
      await connection.link(AGENT_DEADLINE_MS, signal);
    } finally {
      // A device that was not dialled by now counts as lost.
      this.#parts.undialled = undefined;
    }
  }

  /** Single-flight: concurrent callers wait for the renewal in progress. */
  #renewVsock(signal: AbortSignal): Promise<void> {
    this.#renewing ??= replaceVsock(this.#parts, AbortSignal.any([signal, this.#over.signal])).finally(() => {
      this.#renewing = null;
    });
    return this.#renewing;
  }

  /** Retries until the replacement succeeds. False if it never can; rejects when the guest ends first. */
  async #untilDone(part: string, replace: () => Promise<void>): Promise<boolean> {
    const { host, plan } = this.#parts;
    const log = host.log.with({ sandbox_id: plan.sandbox_id, part: part });
    for (let attempt = 0; ; attempt++) {
      try {
        await replace();
        log.info("part replaced");
        return true;
      } catch (error) {
        this.#over.signal.throwIfAborted();
        if (error instanceof NoPortError) {
          log.warn("sidecar cannot be replaced", { error: error.message });
          this.#note({
            drive: {
              reason: "drive_degraded",
              message: DRIVE_LOST,
            },
          });
          return false;
        }
        log.warn("failed to replace a sidecar", { error: describeError(error) });
      }
      await this.#pause(attempt);
    }
  }

  async #pause(attempt: number): Promise<void> {
    await sleep(backoffMs(RETRY_MS, attempt), this.#over.signal);
  }

  /** Resolves with a description of the process's end. */
  async #ended(process: KnownProcess): Promise<string> {
    return await unlessGivenUp(this.#over.signal, process.exited ?? endOf(process).then(() => "ended"));
  }

  /** Sidecars exit with QEMU: that is then no fault of theirs. A guest that is only paused has not ended. */
  async #guestHasEnded(): Promise<boolean> {
    const { machine } = this.#parts;
    if (!machine) return true;
    let closed = false;
    machine.qmp.closed.then(() => {
      closed = true;
    });
    await unlessGivenUp(
      this.#over.signal,
      machine.qmp.execute("query-status", {}, QEMU_ANSWER_MS).catch(() => {}),
    );
    return closed || !isAlive(machine.process);
  }

  #note(change: Partial<Health>): void {
    if (!this.#isOver) this.health.set({ ...this.health.value, ...change });
  }
}
