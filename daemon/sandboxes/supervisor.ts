/**
 * Owns the life of one sandbox: the only one that changes its state. Others ask it, or wait on what it publishes.
 * Every change is committed before it is published, and before what it announces is done. States are in state.ts.
 *
 *   #work     start, take over, standby, resume, end: one after another, however long each takes
 *   #changes  of the row: whether one is still possible is decided where it is written, so nothing late undoes another
 *
 * So a DELETE says `destroying` at once, takes the processes from under whatever is being done, and ends the rest when its
 * turn comes. What is late is known by the sandbox_id, which is never used again, and by the guest that it was meant for.
 */
import { rm } from "node:fs/promises";
import { type ExitCause, SANDBOX_STATES, type SandboxState } from "../../shared/api/sandboxes.ts";
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
import { endProcesses } from "../host/guest/remains.ts";
import { pauseGuest, resumeGuest, StuckError } from "../host/guest/standby.ts";
import type { Guest } from "../host/guest/start.ts";
import type { GuestLink } from "../host/guest-link/handshake.ts";
import { canBecome, requireState } from "./state.ts";
import { updateSandbox } from "./store.ts";
import type { SandboxRow } from "./table.ts";
import { AGENT_LOST_MS, watchGuest } from "./watch.ts";

/** `status.reason` while the guest stands still for want of space on the host's disk. */
export const STALLED_REASON = "disk_full";
const STALLED_MESSAGE = "The host's disk is full: the guest stands still, and goes on once there is space.";

export interface SupervisorDeps {
  database: Database;
  log: Log;
  paths: SandboxPaths;
  /** Starts the guest; `onStarted` is called once its process runs. */
  start(row: SandboxRow, onStarted: () => void, signal: AbortSignal): Promise<Guest>;
  /** Takes over a guest that a daemon before this one started. Throws with why it cannot be. */
  adopt(row: SandboxRow, signal: AbortSignal): Promise<{ guest: Guest; paused: boolean }>;
  /** Ends and removes whatever is on the host by the sandbox's name, but its logs. Throws when something is left. */
  freeRemains(): Promise<void>;
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
  readonly #work = new Mailbox();
  readonly #changes = new Mailbox();
  readonly #giveUp = new AbortController();
  readonly #createdAt = performance.now();
  #guest: Guest | null = null;
  #adopting: Promise<unknown> | null = null;
  #marked: Promise<void> | null = null;
  /** Ends the watch over the guest. */
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

  /** Whether something is being done with it that takes a while. */
  get busy(): boolean {
    return this.#work.busy;
  }

  /** Brings the guest up. A failure becomes the state `failed` with its reason; rejects only when not even that can be written. */
  start(): Promise<void> {
    return this.#work.put(async () => {
      if (this.row.state !== "creating") return;
      try {
        // Whether it could be written shows below.
        const onStarted = () => void this.#markStarted().catch(() => {});
        const guest = await this.#deps.start(this.row, onStarted, this.#giveUp.signal);
        this.#guest = guest;
        await this.#markStarted();
        await this.#become("running", "ready", "The sandbox is running.", {
          ready_at: now(),
          start_mode: guest.start_mode,
          boot: guest.boot,
          create_wall_ms: Math.round(performance.now() - this.#createdAt),
        });
        this.#watch(guest);
      } catch (error) {
        // Whoever destroys it has said so, waits for this turn to end, and frees what is there.
        if (!this.#isGoing) await this.#failToStart(error);
      }
    });
  }

  /** Takes over the guest of a daemon before this one, in the state in which it is. What cannot be taken over has failed. */
  adopt(): Promise<void> {
    const adopting = this.#work.put(async () => {
      if (!ADOPTABLE.includes(this.row.state)) return;
      try {
        const { guest, paused } = await this.#deps.adopt(this.row, this.#giveUp.signal);
        this.#guest = guest;
        await this.#settle(paused);
        this.#watch(guest);
        this.#deps.log.info("sandbox taken over", { sandbox_id: this.row.sandbox_id, paused });
      } catch (error) {
        if (this.#isGoing) return;
        const why = withoutPaths(describeError(error));
        await this.#lose("host_restart", "host_restart", `The guest could not be taken over after a restart: ${why}.`);
      }
    });
    this.#adopting = adopting;
    return adopting;
  }

  /** The guest is gone, or has to go: ends what is left of it, and frees all it had. */
  lost(cause: ExitCause, message: string): Promise<void> {
    return this.#work.put(() => this.#lose(cause, cause, message));
  }

  /** It was on its way for too long: takes away what it waits for, and ends it. */
  async overdue(message: string): Promise<void> {
    const since = this.row.last_transition_at;
    await this.#endProcesses();
    await this.#work.put(async () => {
      if (this.row.last_transition_at === since) await this.#lose("vmm_crash", "overdue", message);
    });
  }

  /** Ends and frees what is left of one that failed. */
  free(): Promise<void> {
    return this.#work.put(async () => {
      if (this.row.state === "failed") await this.#free({});
    });
  }

  /**
   * Ends the guest and frees all it had, from whatever state and whatever is being done with it. Again joins the first.
   * Throws not_ready when a process of it does not end; it is then still to be destroyed.
   */
  async destroy(cause: ExitCause): Promise<void> {
    if (this.row.state === "destroyed") return;
    // One that failed has nothing left to end, and its agent may have another sandbox by now.
    if (this.row.state !== "failed" && this.row.state !== "destroying") {
      const ended = this.row.exit_cause === null ? { exit_cause: cause, exit_at: now() } : {};
      await this.#becomeUnlessPast("destroying", cause, "The sandbox is being destroyed.", ended);
    }
    this.#giveUp.abort();
    if (this.#work.busy) await this.#endProcesses();
    await this.#work.put(async () => {
      if (this.row.state === "destroyed") return;
      await this.#endOrSay();
      await faultPoint("sandbox.ended");
      await rm(this.#deps.paths.directory, { recursive: true, force: true });
      await faultPoint("sandbox.erased");
      await this.#become("destroyed", cause, "The sandbox is destroyed.", { stopped_at: now(), cid_held: false });
      this.#deps.onGone(this.row);
    });
  }

  /** Lets the running guest stand still. Throws invalid_state; or guest_unreachable, and then it goes on or has failed. */
  standby(): Promise<SandboxRow> {
    return this.#work.put(async () => {
      const guest = this.#guestWhen("running");
      await this.#become("pausing", "standby", "The sandbox is being brought to a standstill.");
      try {
        await pauseGuest(guest);
      } catch (error) {
        // Its processes were taken from under us.
        if (this.#isGoing) throw beingDestroyed(this.row);
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
    return this.#work.put(async () => {
      const guest = this.#guestWhen("paused");
      await this.#become("resuming", "resume", "The sandbox is going on.");
      try {
        await resumeGuest(guest, this.#giveUp.signal);
      } catch (error) {
        // Its processes were taken from under us.
        if (this.#isGoing) throw beingDestroyed(this.row);
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
  change(change: Partial<SandboxRow>): Promise<SandboxRow> {
    return this.#write(() => change);
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

  /** Whether somebody destroys it. */
  get #isGoing(): boolean {
    return this.#giveUp.signal.aborted || this.row.state === "destroying";
  }

  /** Once, however often it is told. */
  #markStarted(): Promise<void> {
    this.#marked ??= this.#become("starting", "booting", "The guest is starting.", { started_at: now() });
    return this.#marked;
  }

  /** What was cut off on the way to or from standby is now where the guest is. */
  async #settle(paused: boolean): Promise<void> {
    if (paused && this.row.state === "pausing") {
      await this.#become("paused", "standby", "The sandbox stands still until it is resumed.");
    } else if (!paused && this.row.state !== "running") {
      await this.#become("running", "taken_over", "The sandbox is running.");
    }
  }

  async #failToStart(error: unknown): Promise<void> {
    const stage = error instanceof StepError ? error.step : "start";
    const message = withoutPaths(describeError(error instanceof StepError ? error.cause : error));
    this.#deps.log.warn("sandbox did not start", { sandbox_id: this.row.sandbox_id, error: describeError(error) });
    await this.#lose("vmm_crash", `${stage}_failed`, `The sandbox did not start: ${message}`, {
      create_wall_ms: Math.round(performance.now() - this.#createdAt),
    });
  }

  #watch(guest: Guest): void {
    watchGuest(guest, this.#watchOver.signal, {
      ended: (cause, message) => this.#notice(() => this.#failNow(guest, cause, message)),
      // One that stands still may be silent, and one that has just been resumed may have come back meanwhile.
      silent: () =>
        this.#notice(async () => {
          if (this.row.state !== "running" || guest.connection.state.value.link !== null) return;
          if (guest.machine.stalled.value) return;
          await this.#failNow(guest, "guest_panic", `The guest's agent was silent for ${AGENT_LOST_MS / 1000} s.`);
        }),
      stalled: (stands) =>
        this.#notice(async () => {
          if (this.#guest !== guest) return;
          const status_reason = stands ? STALLED_REASON : "ready";
          const status_message = stands ? STALLED_MESSAGE : "The sandbox is running.";
          await this.#write(() => (this.row.state === "running" ? { status_reason, status_message } : {}));
        }),
      health: () => this.#notice(() => this.#noteHealth(guest)),
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
    await this.#write(() => change);
    if (before.drive_fault === null && drive) {
      this.#deps.onEvent("sandbox.drive_degraded", this.row, { message: drive.message });
    } else if (before.drive_fault !== null && !drive) {
      this.#deps.onEvent("sandbox.drive_restored", this.row, {}, "success");
    }
  }

  /** What cannot be written now, on a full disk, the reconciler finds. */
  #notice(work: () => Promise<void>): void {
    this.#work.put(work).catch((error: unknown) =>
      this.#deps.log.error("sandbox's end not noted", {
        sandbox_id: this.row.sandbox_id,
        error: describeError(error),
      }),
    );
  }

  /** A guest that has ended, or is of no use any more: its failure is said at once, and then it is freed. */
  async #failNow(guest: Guest, cause: ExitCause, message: string): Promise<void> {
    if (this.#guest !== guest) return;
    if (await this.#failed(cause, cause, message, {})) await this.#free({ stopped_at: now() });
  }

  /** What is left of it is freed first: whoever hears of its failure can use its CID again. Nothing when it has ended. */
  async #lose(cause: ExitCause, reason: string, message: string, change: Partial<SandboxRow> = {}): Promise<void> {
    if (!canBecome(this.row.state, "failed")) return;
    const freed = await this.#freed();
    const said = freed ? message : message + NOT_ENDED;
    await this.#failed(cause, reason, said, { ...change, stopped_at: now(), cid_held: !freed });
  }

  /** Whether it has failed by this, and not been ended otherwise before. */
  async #failed(cause: ExitCause, reason: string, message: string, change: Partial<SandboxRow>): Promise<boolean> {
    const ended = { ...change, exit_cause: cause, exit_at: now() };
    if (!(await this.#becomeUnlessPast("failed", reason, message, ended))) return false;
    this.#deps.onEvent("sandbox.failed", this.row, { reason, message: this.row.status_message });
    return true;
  }

  /** Its CID is free once nothing is left of it; what does not end is tried again by the reconciler. */
  async #free(change: Partial<SandboxRow>): Promise<void> {
    const freed = await this.#freed();
    await this.#write(() => {
      // One that is free stays so: it may be another's by now.
      const { status_message: said, cid_held: held } = this.row;
      const status_message = freed || !held || said.endsWith(NOT_ENDED) ? said : said + NOT_ENDED;
      return { ...change, status_message, cid_held: held && !freed };
    });
  }

  async #freed(): Promise<boolean> {
    try {
      await this.#endGuest();
      return true;
    } catch (error) {
      this.#deps.log.error("sandbox not freed", { sandbox_id: this.row.sandbox_id, error: describeError(error) });
      return false;
    }
  }

  async #endOrSay(): Promise<void> {
    try {
      await this.#endGuest();
    } catch (cause) {
      const detail = `The sandbox has not ended yet.${NOT_ENDED}`;
      await this.#write(() => ({ status_reason: "not_ended", status_message: detail }));
      throw new ServiceError("not_ready", { detail, retryAfterSeconds: 10, cause });
    }
  }

  /** Ends the guest, by what is known of it or else by its names. Throws when something of it is left. */
  async #endGuest(): Promise<void> {
    this.#watchOver.abort();
    const guest = this.#guest;
    // What its steps cannot undo is perhaps gone by its names.
    if (guest) await guest.end().catch(() => this.#deps.freeRemains());
    else await this.#deps.freeRemains();
    this.#guest = null;
  }

  /** What does not end now is tried again when it is freed. */
  async #endProcesses(): Promise<void> {
    await endProcesses(this.#deps.paths).catch((error: unknown) =>
      this.#deps.log.warn("processes not ended", { sandbox_id: this.row.sandbox_id, error: describeError(error) }),
    );
  }

  /** Whether it became so. */
  async #becomeUnlessPast(
    state: SandboxState,
    reason: string,
    message: string,
    change: Partial<SandboxRow>,
  ): Promise<boolean> {
    try {
      await this.#become(state, reason, message, change);
      return true;
    } catch (error) {
      if (error instanceof PastError) return false;
      throw error;
    }
  }

  /** Throws PastError when the sandbox is past it, because something else was faster. */
  async #become(state: SandboxState, reason: string, message: string, change: Partial<SandboxRow> = {}): Promise<void> {
    await this.#write(() => {
      if (!canBecome(this.row.state, state)) throw new PastError(this.row, state);
      return {
        ...change,
        state,
        status_reason: reason,
        status_message: message.slice(0, 1000),
        last_transition_at: now(),
      };
    });
    this.#deps.log.info("sandbox state", { sandbox_id: this.row.sandbox_id, state, reason });
    this.#deps.onState(this.row);
  }

  #write(changeOf: () => Partial<SandboxRow>): Promise<SandboxRow> {
    return this.#changes.put(async () => {
      const change = changeOf();
      if (Object.keys(change).length === 0) return this.row;
      await this.#deps.database.commit((queries) => updateSandbox(queries, this.row.sandbox_id, change));
      this.#published.set({ ...this.row, ...change });
      return this.row;
    });
  }
}

/** States of a sandbox that has a guest. */
const ADOPTABLE: readonly SandboxState[] = ["running", "pausing", "paused", "resuming"];

const NOT_ENDED = " A process of it does not end; its guest_cid stays in use until it has.";

/** Something else was faster: most often whoever destroys the sandbox. */
class PastError extends ServiceError {
  constructor({ agent_id, state }: SandboxRow, wanted: SandboxState) {
    const details = { state, allowed_states: SANDBOX_STATES.filter((from) => canBecome(from, wanted)) };
    super("invalid_state", {
      detail: `Sandbox ${agent_id} is ${state} and cannot become ${wanted} any more.`,
      details,
    });
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
