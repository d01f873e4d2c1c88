/**
 * Owns the life of one sandbox: the only one that changes its state. Others ask it, or wait on what it publishes.
 * Every change is committed before it is published. States and their order are in state.ts.
 */
import { rm } from "node:fs/promises";
import type { ExitCause, SandboxState } from "../../shared/api/sandboxes.ts";
import { now } from "../core/clock.ts";
import { faultPoint } from "../core/fault-points.ts";
import type { Log } from "../core/log.ts";
import { Mailbox } from "../core/mailbox.ts";
import type { SandboxPaths } from "../core/paths.ts";
import { Published } from "../core/published.ts";
import { describeError, ServiceError } from "../core/service-error.ts";
import { StepError } from "../core/steps.ts";
import type { Database } from "../db/transact.ts";
import type { Fault } from "../host/guest/parts.ts";
import { pauseGuest, resumeGuest, StuckError } from "../host/guest/standby.ts";
import type { Guest } from "../host/guest/start.ts";
import { correctClock } from "../host/guest-link/clock.ts";
import type { GuestLink } from "../host/guest-link/handshake.ts";
import { canBecome, requireState } from "./state.ts";
import { updateSandbox } from "./store.ts";
import type { SandboxRow } from "./table.ts";

/** `status.reason` while the guest stands still for want of space on the host's disk. */
export const STALLED_REASON = "disk_full";
const STALLED_MESSAGE = "The host's disk is full: the guest stands still, and goes on once there is space.";

/** A guest whose agent is silent for so long is of no use. */
const AGENT_LOST_MS = 30_000;

export interface SupervisorDeps {
  database: Database;
  log: Log;
  paths: SandboxPaths;
  /** Starts the guest; `onStarted` is called once its process runs. */
  start(row: SandboxRow, onStarted: () => void, signal: AbortSignal): Promise<Guest>;
  /** Takes over a guest that a daemon before this one started. Throws with why it cannot be. */
  adopt(row: SandboxRow): Promise<Guest>;
  /** Hears of what nobody asked for: an end, an expiry. */
  onEvent(event: string, row: SandboxRow, details: Record<string, unknown>, outcome?: "success" | "error"): void;
  /** The sandbox has a new state. */
  onState(row: SandboxRow): void;
  /** The sandbox is destroyed: nothing is left to supervise. */
  onGone(row: SandboxRow): void;
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #published: Published<SandboxRow>;
  readonly #mailbox = new Mailbox();
  readonly #giveUp = new AbortController();
  readonly #createdAt = performance.now();
  #guest: Guest | null = null;
  #adopting: Promise<unknown> | null = null;
  #lostTimer: Timer | undefined;
  /** Ends the watch over the guest's connection. */
  readonly #watchOver = new AbortController();

  constructor(row: SandboxRow, deps: SupervisorDeps) {
    this.#published = new Published(row);
    this.#deps = deps;
  }

  get row(): SandboxRow {
    return this.#published.value;
  }

  get published(): Published<SandboxRow> {
    return this.#published;
  }

  get guest(): Guest | null {
    return this.#guest;
  }

  /** Brings the guest up. Never rejects: a failure becomes the state `failed` with its reason. */
  start(): Promise<void> {
    return this.#mailbox.put(async () => {
      if (this.row.state !== "creating") return;
      try {
        const guest = await this.#deps.start(this.row, () => void this.#markStarted(), this.#giveUp.signal);
        this.#guest = guest;
        this.#watch(guest);
        if (this.row.state === "creating") await this.#markStarted();
        await this.#become("running", "ready", "The sandbox is running.", {
          ready_at: now(),
          start_mode: guest.start_mode,
          boot: guest.boot,
          create_wall_ms: Math.round(performance.now() - this.#createdAt),
        });
      } catch (error) {
        await this.#failToStart(error);
      }
    });
  }

  /** Takes over the running guest. Resolves to why it cannot be, or to null. */
  adopt(): Promise<string | null> {
    const adopting = this.#mailbox.put(async () => {
      try {
        const guest = await this.#deps.adopt(this.row);
        this.#guest = guest;
        this.#watch(guest);
        this.#deps.log.info("sandbox taken over", { sandbox_id: this.row.sandbox_id });
        return null;
      } catch (error) {
        return describeError(error);
      }
    });
    this.#adopting = adopting;
    return adopting;
  }

  /** Notes that the guest is gone and everything of it was freed. */
  lost(cause: ExitCause, message: string): Promise<void> {
    return this.#mailbox.put(async () => {
      if (!canBecome(this.row.state, "failed")) return;
      await this.#become("failed", cause, message, {
        exit_cause: cause,
        exit_at: now(),
        stopped_at: now(),
        cid_held: false,
      });
      this.#deps.onEvent("sandbox.failed", this.row, { reason: cause, message });
    });
  }

  /** Ends the guest and frees all it had, from whatever state. Again waits for the first. */
  destroy(cause: ExitCause): Promise<void> {
    this.#giveUp.abort();
    return this.#mailbox.put(async () => {
      if (this.row.state === "destroyed") return;
      // One that failed has nothing left to end, and its agent may have another sandbox by now.
      const hasFailed = this.row.state === "failed";
      const ended = this.row.exit_cause === null ? { exit_cause: cause, exit_at: now() } : {};
      if (!hasFailed) await this.#become("destroying", cause, "The sandbox is being destroyed.", ended);
      await this.#endGuest();
      await faultPoint("sandbox.ended");
      await rm(this.#deps.paths.directory, { recursive: true, force: true });
      await faultPoint("sandbox.erased");
      await this.#become("destroyed", cause, "The sandbox is destroyed.", { stopped_at: now(), cid_held: false });
      this.#deps.onGone(this.row);
    });
  }

  /** Lets the running guest stand still. Throws invalid_state; or guest_unreachable, and then it goes on or has failed. */
  standby(): Promise<SandboxRow> {
    return this.#mailbox.put(async () => {
      const guest = this.#guestWhen("running");
      await this.#become("pausing", "standby", "The sandbox is being brought to a standstill.");
      try {
        await this.#unlessDestroyed(pauseGuest(guest));
      } catch (error) {
        if (this.#giveUp.signal.aborted) throw error;
        const detail = `The guest was not brought to a standstill: ${withoutPaths(describeError(error))}`;
        if (error instanceof StuckError) await this.#failNow(guest, "vmm_crash", detail);
        else await this.#become("running", "standby_failed", detail);
        throw new ServiceError("guest_unreachable", { detail, cause: error });
      }
      await this.#become("paused", "standby", "The sandbox stands still until it is resumed.");
      return this.row;
    });
  }

  /** Lets the paused guest go on, its clock right. Throws invalid_state; or guest_unreachable, and then it has failed. */
  resume(): Promise<SandboxRow> {
    return this.#mailbox.put(async () => {
      const guest = this.#guestWhen("paused");
      await this.#become("resuming", "resume", "The sandbox is going on.");
      try {
        await this.#unlessDestroyed(resumeGuest(guest, this.#giveUp.signal));
      } catch (error) {
        if (this.#giveUp.signal.aborted) throw error;
        const detail = `The guest did not go on after standby: ${withoutPaths(describeError(error))}`;
        await this.#failNow(guest, guest.machine.ending() === "panic" ? "guest_panic" : "vmm_crash", detail);
        throw new ServiceError("guest_unreachable", { detail, cause: error });
      }
      await this.#become("running", "resumed", "The sandbox is running.");
      await this.#noteHealth(guest);
      return this.row;
    });
  }

  /** Writes changes that are no change of state: labels, timeouts. */
  async change(change: Partial<SandboxRow>): Promise<SandboxRow> {
    return await this.#mailbox.put(async () => {
      await this.#write(change);
      return this.row;
    });
  }

  /** The running guest's link of the moment; waits a little for one that is coming back. Throws invalid_state. */
  async link(deadlineMs: number, signal?: AbortSignal): Promise<GuestLink> {
    await this.#adopting;
    if (!this.#guest) throw new Error("the guest has ended");
    const link = await this.#guest.connection.link(deadlineMs, signal);
    // Brought to a standstill meanwhile: what is sent now would wait for its end.
    requireState(this.row, ["running"]);
    return link;
  }

  #guestWhen(state: SandboxState): Guest {
    requireState(this.row, [state]);
    if (!this.#guest) throw new ServiceError("guest_unreachable", { detail: "The guest has just ended." });
    return this.#guest;
  }

  /** Rejects as soon as somebody destroys the sandbox: whatever QEMU is busy with must not hold that up. */
  async #unlessDestroyed<T>(work: Promise<T>): Promise<T> {
    const { signal } = this.#giveUp;
    const destroyed = Promise.withResolvers<never>();
    const refuse = () => destroyed.reject(beingDestroyed(this.row));
    signal.addEventListener("abort", refuse);
    try {
      if (signal.aborted) refuse();
      return await Promise.race([work, destroyed.promise]);
    } finally {
      signal.removeEventListener("abort", refuse);
    }
  }

  async #markStarted(): Promise<void> {
    if (this.row.state === "creating") {
      await this.#become("starting", "booting", "The guest is starting.", { started_at: now() });
    }
  }

  async #failToStart(error: unknown): Promise<void> {
    const stage = error instanceof StepError ? error.step : "start";
    const message = withoutPaths(describeError(error instanceof StepError ? error.cause : error));
    this.#deps.log.warn("sandbox did not start", { sandbox_id: this.row.sandbox_id, error: describeError(error) });
    await this.#become("failed", `${stage}_failed`, `The sandbox did not start: ${message}`, {
      exit_cause: "vmm_crash",
      exit_at: now(),
      stopped_at: now(),
      cid_held: false,
      create_wall_ms: Math.round(performance.now() - this.#createdAt),
    });
    this.#deps.onEvent("sandbox.failed", this.row, {
      reason: this.row.status_reason,
      message: this.row.status_message,
    });
  }

  /** Ends the sandbox when its guest does, or when its agent is silent for too long. */
  #watch(guest: Guest): void {
    guest.exited.then((how) => {
      const { cause, message } = ENDINGS[guest.ending() ?? "crash"];
      void this.#fail(guest, cause, `${message} (QEMU: ${how}).`);
    });
    const { state } = guest.connection;
    const over = this.#watchOver.signal;
    const { stalled } = guest.machine;
    const watchLink = async () => {
      while (!over.aborted) {
        await state.until(({ link }) => link === null, FOREVER_MS, over);
        this.#lostTimer = setTimeout(() => void this.#failSilent(guest), AGENT_LOST_MS);
        await state.until(({ link }) => link !== null, FOREVER_MS, over);
        clearTimeout(this.#lostTimer);
      }
    };
    const watchStall = async () => {
      while (!over.aborted) {
        await stalled.until((stands) => stands, FOREVER_MS, over);
        guest.connection.freeze();
        await this.#note(guest, STALLED_REASON, STALLED_MESSAGE);
        await stalled.until((stands) => !stands, FOREVER_MS, over);
        guest.connection.release();
        reconnect(guest, over).catch(() => this.#failSilent(guest));
        await this.#note(guest, "ready", "The sandbox is running.");
      }
    };
    watchStall().catch(() => {});
    watchLink().catch(() => {});
    const watchHealth = async () => {
      while (!over.aborted) {
        const { generation } = guest.health;
        await this.#mailbox.put(() => this.#noteHealth(guest));
        await guest.health.until(() => guest.health.generation !== generation, FOREVER_MS, over);
      }
    };
    watchHealth().catch((error: unknown) => {
      if (!over.aborted) this.#deps.log.error("health not noted", { error: describeError(error) });
    });
  }

  /** Shows what is amiss with the guest's parts, until it is put right. Its state is not touched. */
  async #noteHealth(guest: Guest): Promise<void> {
    if (this.#guest !== guest) return;
    const { drive, vsock } = guest.health.value;
    const fault = vsock ?? drive;
    const before = this.row;
    const change: Partial<SandboxRow> = {};
    if (before.drive_fault !== (drive?.message ?? null)) change.drive_fault = drive?.message ?? null;
    if (before.state === "running" && fault && before.status_message !== fault.message) {
      Object.assign(change, { status_reason: fault.reason, status_message: fault.message });
    } else if (before.state === "running" && !fault && FAULT_REASONS.includes(before.status_reason)) {
      Object.assign(change, { status_reason: "recovered", status_message: "The sandbox is running." });
    }
    if (Object.keys(change).length === 0) return;
    await this.#write(change);
    if (before.drive_fault === null && drive) {
      this.#deps.onEvent("sandbox.drive_degraded", this.row, { message: drive.message });
    } else if (before.drive_fault !== null && !drive) {
      this.#deps.onEvent("sandbox.drive_restored", this.row, {}, "success");
    }
  }

  /** Says of a running guest how it goes. */
  async #note(guest: Guest, reason: string, message: string): Promise<void> {
    await this.#mailbox.put(async () => {
      if (this.#guest === guest && this.row.state === "running") await this.#become("running", reason, message);
    });
  }

  async #fail(guest: Guest, cause: ExitCause, message: string): Promise<void> {
    await this.#mailbox.put(() => this.#failNow(guest, cause, message));
  }

  /** One that stands still may be silent, and one that has just been resumed may have come back meanwhile. */
  async #failSilent(guest: Guest): Promise<void> {
    await this.#mailbox.put(async () => {
      if (this.row.state !== "running" || guest.connection.state.value.link !== null) return;
      if (guest.machine.stalled.value) return;
      await this.#failNow(guest, "guest_panic", `The guest's agent was silent for ${AGENT_LOST_MS / 1000} s.`);
    });
  }

  async #failNow(guest: Guest, cause: ExitCause, message: string): Promise<void> {
    if (this.#guest !== guest || !canBecome(this.row.state, "failed")) return;
    await this.#become("failed", cause, message, { exit_cause: cause, exit_at: now() });
    await this.#endGuest();
    await this.#write({ stopped_at: now(), cid_held: false });
    this.#deps.onEvent("sandbox.failed", this.row, { reason: cause, message });
  }

  async #endGuest(): Promise<void> {
    this.#watchOver.abort();
    clearTimeout(this.#lostTimer);
    const guest = this.#guest;
    this.#guest = null;
    await guest?.end();
  }

  async #become(state: SandboxState, reason: string, message: string, change: Partial<SandboxRow> = {}): Promise<void> {
    if (this.row.state !== state && !canBecome(this.row.state, state)) {
      throw new Error(`sandbox ${this.row.sandbox_id} cannot become ${state} from ${this.row.state}`);
    }
    await this.#write({
      ...change,
      state,
      status_reason: reason,
      status_message: message.slice(0, 1000),
      last_transition_at: now(),
    });
    this.#deps.log.info("sandbox state", { sandbox_id: this.row.sandbox_id, state, reason });
    this.#deps.onState(this.row);
  }

  async #write(change: Partial<SandboxRow>): Promise<void> {
    await this.#deps.database.commit((queries) => updateSandbox(queries, this.row.sandbox_id, change));
    this.#published.set({ ...this.row, ...change });
  }
}

/** After a guest stood still: its connection as before, or a new one, and its clock right. Throws when it does not answer. */
async function reconnect(guest: Guest, signal: AbortSignal): Promise<void> {
  await guest.ensureVsock(signal);
  const link = await guest.connection.link(AGENT_LOST_MS, signal);
  try {
    await correctClock(link);
  } catch {
    // What was on its way when it stopped has cost it its vsock device.
    link.close("the guest does not answer after it stood still");
    await link.closed;
    await guest.ensureVsock(signal);
    await correctClock(await guest.connection.link(AGENT_LOST_MS, signal));
  }
}

/** Where things lie on the host is nobody's business: of each path its last part is left. */
function withoutPaths(message: string): string {
  return message.replaceAll(/(?:\/[\w.@-]+)+\/([\w.@-]+)/g, "$1");
}

function beingDestroyed(row: SandboxRow): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `Sandbox ${row.agent_id} is being destroyed.`,
    details: { state: "destroying", allowed_states: ["running", "paused"] },
  });
}

const FAULT_REASONS: readonly string[] = ["drive_degraded", "vsock_lost"] satisfies Fault["reason"][];

const ENDINGS = {
  panic: { cause: "guest_panic", message: "The guest's kernel panicked" },
  power_off: { cause: "user_requested", message: "The guest powered itself off" },
  out_of_memory: { cause: "oom", message: "The host ended a process of the virtual machine at its limit of memory" },
  oom: { cause: "oom", message: "The host's kernel ended the virtual machine for want of memory" },
  crash: { cause: "vmm_crash", message: "The virtual machine ended unexpectedly" },
} as const satisfies Record<string, { cause: ExitCause; message: string }>;

/** Longer than any daemon runs, and short enough for a timer. */
const FOREVER_MS = 2 ** 31 - 1;
