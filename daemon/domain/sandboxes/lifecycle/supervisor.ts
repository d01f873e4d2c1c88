/**
 * Supervisor of one sandbox, the only code that changes its state. Other code sends it requests, or waits on its published row.
 * Longer operations (start, adopt, standby, hibernate, resume, end) run one after another; each change of the row is written before the
 * operation that it announces, and changes have their own order (published-row.ts). Its verbs, the states in which each acts and the
 * changes that each may make are a table in state.ts.
 *
 * So a DELETE publishes `destroying` immediately, ends the processes under the current operation, and completes the teardown in its turn.
 * Late work is recognized by the sandbox_id, which is never reused, and by the guest for which it was meant.
 */
import { rm } from "node:fs/promises";
import type { ExitCause } from "../../../../shared/api/sandboxes.ts";
import type { SnapshotId } from "../../../../shared/ids.ts";
import { monotonicMs, now } from "../../../core/clock.ts";
import { Mailbox } from "../../../core/concurrency/mailbox.ts";
import type { Published } from "../../../core/concurrency/published.ts";
import { StepError } from "../../../core/concurrency/undo-steps.ts";
import { faultPoint } from "../../../core/fault-points.ts";
import { describeError, ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { type SnapshotRequest, type SnapshotTaken, StrandedError, UnsavableError } from "../../../host/guest/save.ts";
import { forgetSaved, isSaved } from "../../../host/guest/saved-state.ts";
import { pauseGuest, resumeGuest, StuckError } from "../../../host/guest/standby.ts";
import type { Guest } from "../../../host/guest/start.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import { NonsenseError } from "../../../host/machine/qmp-message.ts";
import {
  HIBERNATED_MESSAGE,
  healthChange,
  leftChange,
  lostMessage,
  RESUMED_REASONS,
  STANDBY_MESSAGE,
  stalledChange,
  takenChange,
} from "../health.ts";
import type { SnapshotPlace } from "../snapshots/place.ts";
import type { SandboxRow } from "../table.ts";
import { PublishedRow, type RowDeps } from "./published-row.ts";
import { QUARANTINED, QuarantineError } from "./quarantine.ts";
import { actsIn, mayTake, requireState, VERBS } from "./state.ts";
import { Teardown, type TeardownDeps } from "./teardown.ts";
import { AGENT_LOST_MS, watchGuest } from "./watch.ts";

export interface SupervisorDeps extends RowDeps, TeardownDeps {
  /** Starts the guest; `onStarted` is called once its process runs. */
  start(row: SandboxRow, onStarted: () => void, signal: AbortSignal): Promise<Guest>;
  /** Adopts a guest of the previous daemon. Throws the reason if that is impossible; not_ready: retry later. */
  adopt(row: SandboxRow, signal: AbortSignal): Promise<{ guest: Guest; paused: boolean }>;
  /** Restores a guest from its saved state. If it throws, the saved state still exists, unless the guest had continued. */
  restore(row: SandboxRow, signal: AbortSignal): Promise<Guest>;
  /** Takes a snapshot of the saved state of a hibernated sandbox. */
  snapshotSaved(row: SandboxRow, request: SnapshotRequest): Promise<SnapshotTaken>;
  /**
   * Copies a snapshot into the sandbox's directory; once this resolves, it replaces the sandbox's state. If it throws, nothing has changed.
   */
  adoptSnapshot(row: SandboxRow, from: SnapshotPlace): Promise<void>;
  /** Throws room_moving while the sandbox's room is moving to another host. */
  requireUnmoved(row: SandboxRow): void;
  /** Called when the sandbox is destroyed and needs no supervisor. */
  onGone(row: SandboxRow): void;
}

export class Supervisor {
  readonly #deps: SupervisorDeps;
  readonly #row: PublishedRow;
  readonly #ending: Teardown;
  readonly #work = new Mailbox();
  readonly #giveUp = new AbortController();
  readonly #createdAt = monotonicMs();
  #adopting: Promise<unknown> | null = null;
  #isAdopting = false;
  #isLeft = false;
  #marked: Promise<void> | null = null;
  /** Settles once a snapshot in progress lets the guest run again. */
  #standing: Promise<unknown> = Promise.resolve();

  constructor(row: SandboxRow, deps: SupervisorDeps) {
    this.#row = new PublishedRow(row, deps);
    this.#ending = new Teardown(this.#row, deps);
    this.#deps = deps;
  }

  get row(): SandboxRow {
    return this.#row.row;
  }

  get published(): Published<SandboxRow> {
    return this.#row.published;
  }

  /** Time in the current state as seen by this process; independent of changes of the host's clock. */
  get inStateMs(): number {
    return monotonicMs() - this.#row.since;
  }

  get guest(): Guest | null {
    return this.#ending.guest;
  }

  /** Whether longer work on the sandbox is in progress. */
  get busy(): boolean {
    return this.#work.busy;
  }

  /** Whether its guest runs and could not be adopted yet: `adopt` has to be retried. */
  get isLeft(): boolean {
    return this.#isLeft;
  }

  /** Whether its guest is currently being adopted, which has separate deadlines. */
  get isAdopting(): boolean {
    return this.#isAdopting;
  }

  /** Settles once its guest was adopted, if the previous daemon started it. */
  adopted(): Promise<unknown> {
    return this.#adopting ?? Promise.resolve();
  }

  /** Starts the guest. A failure becomes the state `failed` with its reason; rejects only if not even that can be written. */
  start(): Promise<void> {
    return this.#work.put(async () => {
      if (!actsIn("start", this.row.state)) return;
      try {
        // A failed write is reported by the second call below.
        const onStarted = () => void this.#markStarted().catch(() => {});
        const guest = await this.#deps.start(this.row, onStarted, this.#giveUp.signal);
        const over = this.#ending.take(guest);
        await this.#markStarted();
        await this.#row.become("start", "running", "ready", "The sandbox is running.", {
          ready_at: now(),
          start_mode: guest.start_mode,
          boot: guest.boot,
          create_wall_ms: Math.round(monotonicMs() - this.#createdAt),
        });
        this.#watch(guest, over);
      } catch (error) {
        // `destroy` has published it, waits for this turn to end, and frees the resources.
        if (!this.#isGoing) await this.#failToStart(error);
      }
    });
  }

  /**
   * Adopts the guest of the previous daemon, in its current state. If it cannot be adopted, the sandbox fails; if the host only lacks a
   * resource now, the guest is left as it is. A repeated call retries. `after` is awaited first.
   */
  adopt(after?: Promise<unknown>): Promise<void> {
    this.#isAdopting = true;
    const adopting = this.#work.put(async () => {
      await after;
      if (!actsIn("adopt", this.row.state) || this.guest) return;
      try {
        if (await this.#staysSaved()) return;
        const { guest, paused } = await this.#deps.adopt(this.row, this.#giveUp.signal);
        const over = this.#ending.take(guest);
        this.#isLeft = false;
        // Leftovers of an interrupted save.
        await forgetSaved(this.#deps.paths);
        await this.#settle(paused);
        await this.#row.found();
        this.#watch(guest, over);
        this.#deps.log.info("adopted a sandbox", { sandbox_id: this.row.sandbox_id, paused });
      } catch (error) {
        if (this.#isGoing) return;
        this.#isLeft = error instanceof ServiceError && error.code === "not_ready";
        if (this.#isLeft) return await this.#leave(describeError(error));
        if (error instanceof QuarantineError) {
          const put = "The sandbox is quarantined, and its virtual machine was ended:";
          return await this.#ending.lose("vmm_crash", QUARANTINED, `${put} ${error.message}. Its drive is untouched.`);
        }
        const cause = error instanceof NonsenseError ? "vmm_crash" : "host_restart";
        await this.#ending.lose(cause, cause, lostMessage(this.row, toldOf(error)));
      }
    });
    this.#adopting = adopting.finally(() => {
      this.#isAdopting = false;
    });
    // The caller gets the error.
    this.#adopting.catch(() => {});
    return adopting;
  }

  /** The guest is gone, or has to go: ends its remaining processes, and frees its resources. */
  lost(cause: ExitCause, message: string): Promise<void> {
    return this.#work.put(() => this.#ending.lose(cause, cause, message));
  }

  /** Its transition took too long: ends the processes it waits for, and the sandbox. */
  async overdue(message: string): Promise<void> {
    const since = this.row.last_transition_at;
    await this.#ending.endProcesses();
    await this.#work.put(async () => {
      if (this.row.last_transition_at !== since) return;
      // Its saved state, if complete, is kept, whatever it waited for.
      if (!(await this.#staysSaved())) await this.#ending.lose("vmm_crash", "overdue", message);
    });
  }

  /** Ends the remaining processes of a failed sandbox, and frees its resources. */
  free(): Promise<void> {
    return this.#work.put(async () => {
      if (actsIn("free", this.row.state)) await this.#ending.free({});
    });
  }

  /**
   * Ends the guest and frees all of its resources, in every state and during other work. A repeated call joins the first. Throws not_ready
   * if one of its processes does not end; the sandbox then remains to be destroyed.
   */
  async destroy(cause: ExitCause): Promise<void> {
    if (!actsIn("destroy", this.row.state)) return;
    // A failed sandbox has no guest to end, and its agent may have another sandbox by now.
    if (mayTake("destroy", this.row.state, "destroying")) {
      const ended = this.row.exit_cause === null ? { exit_cause: cause, exit_at: now() } : {};
      await this.#row.becomeUnlessPast("destroy", "destroying", cause, "The sandbox is being destroyed.", ended);
    }
    this.#giveUp.abort();
    if (this.#work.busy) await this.#ending.endProcesses();
    await this.#work.put(async () => {
      if (!actsIn("destroy", this.row.state)) return;
      await this.#ending.endOrSay();
      await faultPoint("sandbox.ended");
      await rm(this.#deps.paths.directory, { recursive: true, force: true });
      await faultPoint("sandbox.erased");
      await this.#row.become("destroy", "destroyed", cause, "The sandbox is destroyed.", {
        stopped_at: now(),
        cid_held: false,
      });
      this.#deps.onGone(this.row);
    });
  }

  /**
   * Pauses the running guest; `reason` and `message` go into its record. Does nothing if `isWanted` returns false in its turn. Throws
   * invalid_state; or guest_unreachable, and then it keeps running or has failed.
   */
  standby(reason = "standby", message = STANDBY_MESSAGE, isWanted = () => true): Promise<SandboxRow> {
    return this.#work.put(async () => {
      if (!isWanted()) return this.row;
      const guest = this.#guestFor("standby");
      await this.#row.become("standby", "pausing", reason, "The sandbox is going into standby.");
      try {
        await pauseGuest(guest);
      } catch (error) {
        // A concurrent destroy has ended its processes.
        if (this.#isGoing) throw beingDestroyed(this.row);
        const detail = `The guest could not be paused: ${toldOf(error)}`;
        if (error instanceof StuckError) await this.#ending.failNow(guest, "vmm_crash", detail);
        else await this.#row.become("standby", "running", "standby_failed", detail);
        throw new ServiceError("guest_unreachable", { detail, cause: error });
      }
      await this.#row.become("standby", "paused", reason, message);
      return this.row;
    });
  }

  /**
   * Saves the running guest to disk and ends its processes; otherwise like standby. Throws invalid_state; or guest_unreachable or
   * disk_full, and the sandbox then continues to run or has failed.
   */
  hibernate(reason = "hibernated", message = HIBERNATED_MESSAGE, isWanted = () => true): Promise<SandboxRow> {
    return this.#work.put(async () => {
      if (!isWanted()) return this.row;
      const guest = this.#guestFor("hibernate");
      await this.#row.become("hibernate", "hibernating", reason, "The sandbox is being saved to disk.");
      try {
        await guest.save(this.#giveUp.signal);
      } catch (error) {
        // A concurrent destroy has ended its processes.
        if (this.#isGoing) throw beingDestroyed(this.row);
        throw await this.#notSaved(guest, error);
      }
      await this.#row.become("hibernate", "hibernated", reason, message);
      await this.#ending.leave();
      return this.row;
    });
  }

  async #notSaved(guest: Guest, error: unknown): Promise<ServiceError> {
    const detail = `The guest could not be saved: ${toldOf(error)}.`;
    if (error instanceof StrandedError) await this.#ending.failNow(guest, "vmm_crash", detail);
    else {
      await this.#row.become("hibernate", "running", "hibernate_failed", detail);
      await this.#noteHealth(guest);
    }
    return this.#saveError(error, detail);
  }

  #saveError(error: unknown, detail: string): ServiceError {
    const isFull = /ENOSPC|No space left/.test(describeError(error));
    if (error instanceof UnsavableError) {
      return new ServiceError("invalid_state", {
        detail,
        details: { state: this.row.state, reason: "not_savable" },
        hint: "Destroy and recreate the sandbox; the cause cannot be removed while it exists.",
        cause: error,
      });
    }
    return new ServiceError(isFull ? "disk_full" : "guest_unreachable", { detail, cause: error });
  }

  /**
   * Resumes a guest from standby or hibernation, and sets its clock. For a hibernated one, `admit` checks within the transaction that it
   * may take memory again. Throws invalid_state and errors of `admit`; or guest_unreachable, and then it has failed, or hibernates as
   * before. `reason` is in its record during the resume.
   */
  resume(admit?: (queries: Queries) => void, reason = "resume"): Promise<SandboxRow> {
    return this.#work.put(() => {
      requireState(this.row, VERBS.resume.acts);
      return this.row.state === "hibernated" ? this.#restore(reason, admit) : this.#resume();
    });
  }

  async #restore(reason: string, admit?: (queries: Queries) => void): Promise<SandboxRow> {
    await this.#row.become("resume", "resuming", reason, "The sandbox is being restored from disk.", {}, (queries) =>
      this.#admit(queries, admit),
    );
    return await this.#restoreNow({});
  }

  /** Within the transaction in which it takes memory again: checks that its saved state does not belong to another host. */
  #admit(queries: Queries, admit?: (queries: Queries) => void): void {
    this.#deps.requireUnmoved(this.row);
    admit?.(queries);
  }

  async #restoreNow(change: Partial<SandboxRow>): Promise<SandboxRow> {
    let guest: Guest;
    try {
      guest = await this.#deps.restore(this.row, this.#giveUp.signal);
    } catch (error) {
      // A concurrent destroy has ended its processes.
      if (this.#isGoing) throw beingDestroyed(this.row);
      const cause = error instanceof StepError ? error.cause : error;
      const detail = `The sandbox could not be restored: ${toldOf(cause)}.`;
      if (isSaved(this.#deps.paths)) await this.#row.become("resume", "hibernated", "resume_failed", detail, change);
      else await this.#ending.lose("vmm_crash", "vmm_crash", detail);
      throw cause instanceof ServiceError ? cause : new ServiceError("guest_unreachable", { detail, cause: error });
    }
    const over = this.#ending.take(guest);
    await this.#row.become("resume", "running", "resumed", "The sandbox is running.", change);
    this.#watch(guest, over);
    return this.row;
  }

  async #resume(): Promise<SandboxRow> {
    const guest = this.#guestFor("resume");
    await this.#row.become("resume", "resuming", "resume", "The sandbox is resuming.");
    try {
      await resumeGuest(guest, this.#giveUp.signal);
    } catch (error) {
      // A concurrent destroy has ended its processes.
      if (this.#isGoing) throw beingDestroyed(this.row);
      const detail = `The guest did not resume after standby: ${toldOf(error)}`;
      await this.#ending.failNow(guest, guest.machine.ending() === "panic" ? "guest_panic" : "vmm_crash", detail);
      throw new ServiceError("guest_unreachable", { detail, cause: error });
    }
    await this.#row.become("resume", "running", "resumed", "The sandbox is running.");
    await this.#noteHealth(guest);
    return this.row;
  }

  /** Null unless a change is being written; otherwise resolves once the change is in the row or has failed. */
  settled(): Promise<void> | null {
    return this.#row.settled();
  }

  /** Writes changes other than of state: labels, timeouts. */
  change(change: Partial<SandboxRow>): Promise<SandboxRow> {
    return this.#row.write(() => change);
  }

  /** Like `change`, for a change that depends on the current row; if `changeOf` throws, the row does not change. */
  changeBy(changeOf: (row: SandboxRow) => Partial<SandboxRow>): Promise<SandboxRow> {
    return this.#row.write(() => changeOf(this.row));
  }

  /** The running guest's current link; waits a short time for a reconnecting one. Throws invalid_state. */
  async link(deadlineMs: number): Promise<GuestLink> {
    await this.#adopting;
    await this.#standing;
    if (!this.guest) throw this.#isLeft ? this.#notTakenOver() : new Error("the guest has ended");
    // Reads already show a change that is being flushed.
    await this.#row.settled();
    const link = await this.guest.connection.link(deadlineMs);
    // Paused in the meantime: a request sent now would be blocked until the resume.
    requireState(this.row, ["running"]);
    return link;
  }

  /**
   * Whether its complete saved state is on disk, from when its daemon ended: then that is its state, whatever is running. An incomplete
   * save is deleted, and the guest continues; a hibernated sandbox without its saved state fails.
   */
  async #staysSaved(): Promise<boolean> {
    const { state, status_reason } = this.row;
    if (state !== "hibernating" && state !== "hibernated" && state !== "resuming") return false;
    if (!isSaved(this.#deps.paths)) {
      if (state === "hibernated") throw new Error("its saved state is gone");
      await forgetSaved(this.#deps.paths);
      return false;
    }
    await this.#deps.endLeft();
    if (state === "hibernated") return true;
    // A sandbox saved for the host's shutdown still has to be resumed by this daemon.
    const isKept = state === "hibernating" || RESUMED_REASONS.includes(status_reason);
    const reason = isKept ? status_reason : "resume_failed";
    await this.#row.become("adopt", "hibernated", reason, HIBERNATED_MESSAGE);
    return true;
  }

  /**
   * Takes a snapshot; the sandbox continues, and calls to it wait during that. Throws invalid_state; guest_unreachable or disk_full, and
   * then there is no snapshot, and the sandbox continues or has failed.
   */
  snapshot(request: SnapshotRequest): Promise<SnapshotTaken & { parent: SnapshotId | null }> {
    return this.#work.put(async () => {
      requireState(this.row, request.mode === "full" ? VERBS.snapshot.acts : ["running"]);
      const parent = this.row.snapshot_id;
      if (this.row.state === "hibernated") {
        await request.whenReady?.(this.#giveUp.signal);
        const saved = await this.#deps.snapshotSaved(this.row, request);
        await request.whileStill?.(this.#giveUp.signal);
        return { ...saved, parent };
      }
      const guest = this.#guestFor("snapshot");
      const taken = guest.snapshot(request, this.#giveUp.signal);
      this.#standing = taken.catch(() => {});
      try {
        return { ...(await taken), parent };
      } catch (error) {
        // A concurrent destroy has ended its processes.
        if (this.#isGoing) throw beingDestroyed(this.row);
        const detail = `No snapshot could be taken: ${toldOf(error)}.`;
        if (error instanceof StrandedError) await this.#ending.failNow(guest, "vmm_crash", detail);
        throw this.#saveError(error, detail);
      }
    });
  }

  /**
   * Rolls the sandbox back to `from`; its guest ends, its changes since then are lost, and `onEnded` is called. `admit` is as for resume;
   * if absent, the sandbox hibernates in the restored state. Throws invalid_state and errors of `admit`; otherwise it is unchanged, has
   * failed, or hibernates in the restored state.
   */
  rollback(
    from: SnapshotPlace,
    change: Partial<SandboxRow>,
    { admit, onEnded }: { admit?(queries: Queries): void; onEnded(): Promise<void> },
  ): Promise<SandboxRow> {
    return this.#work.put(async () => {
      requireState(this.row, VERBS.rollback.acts);
      const before = this.row.state;
      const { status_reason, status_message } = this.row;
      const isAsleep = before === "hibernated";
      if (!isAsleep) this.#guestFor("rollback");
      const message = "The sandbox is being rolled back.";
      await this.#row.become("rollback", "resuming", "rollback", message, {}, (queries) =>
        this.#admit(queries, isAsleep ? admit : undefined),
      );
      try {
        await this.guest?.shortener.end();
        await this.#deps.adoptSnapshot(this.row, from);
      } catch (error) {
        if (this.#isGoing) throw beingDestroyed(this.row);
        this.guest?.shortener.begin();
        await this.#row.become("rollback", before, status_reason, status_message);
        const detail = `The sandbox was not rolled back: ${toldOf(error)}.`;
        throw error instanceof ServiceError ? error : this.#saveError(error, detail);
      }
      // From here on its state is that of the snapshot, even if a later step fails.
      for (const end of [() => this.#ending.leave(), onEnded]) {
        await end().catch((error: unknown) =>
          this.#deps.log.error("failed to end the state from before a rollback", {
            sandbox_id: this.row.sandbox_id,
            error: describeError(error),
          }),
        );
      }
      if (admit) return await this.#restoreNow(change);
      await this.#row.become("rollback", "hibernated", "rolled_back", HIBERNATED_MESSAGE, change);
      return this.row;
    });
  }

  #guestFor(verb: "standby" | "hibernate" | "resume" | "snapshot" | "rollback"): Guest {
    requireState(this.row, VERBS[verb].acts);
    if (this.guest) return this.guest;
    if (this.#isLeft) throw this.#notTakenOver();
    throw new ServiceError("guest_unreachable", { detail: "The guest has just ended." });
  }

  #notTakenOver(): ServiceError {
    return new ServiceError("guest_unreachable", { detail: this.row.status_message });
  }

  /** Whether it is being destroyed. */
  get #isGoing(): boolean {
    return this.#giveUp.signal.aborted || this.row.state === "destroying";
  }

  /** Idempotent. */
  #markStarted(): Promise<void> {
    this.#marked ??= this.#row.become("start", "starting", "booting", "The guest is starting.", { started_at: now() });
    return this.#marked;
  }

  async #leave(why: string): Promise<void> {
    this.#deps.log.warn("failed to adopt a sandbox; will retry", { sandbox_id: this.row.sandbox_id, error: why });
    await this.#row.write(() => (this.#isGoing ? {} : leftChange(this.row, toldOf(why))));
  }

  /** Completes an interrupted transition to or from standby according to the guest's actual state. */
  async #settle(paused: boolean): Promise<void> {
    if (paused && this.row.state === "pausing") {
      await this.#row.become("adopt", "paused", "standby", STANDBY_MESSAGE);
    } else if (!paused && this.row.state !== "running") {
      await this.#row.become("adopt", "running", "taken_over", "The sandbox is running.");
    } else {
      await this.#row.write(() => takenChange(this.row));
    }
  }

  async #failToStart(error: unknown): Promise<void> {
    const stage = error instanceof StepError ? error.step : "start";
    const message = toldOf(error instanceof StepError ? error.cause : error);
    this.#deps.log.warn("failed to start a sandbox", { sandbox_id: this.row.sandbox_id, error: describeError(error) });
    await this.#ending.lose("vmm_crash", `${stage}_failed`, `The sandbox did not start: ${message}`, {
      create_wall_ms: Math.round(monotonicMs() - this.#createdAt),
    });
  }

  #watch(guest: Guest, over: AbortSignal): void {
    watchGuest(guest, over, {
      ended: (cause, message) => this.#notice(() => this.#ending.failNow(guest, cause, message)),
      // A paused guest may be silent, and a just-resumed one may have reconnected since.
      silent: () =>
        this.#notice(async () => {
          if (this.row.state !== "running" || guest.connection.state.value.link !== null) return;
          if (guest.machine.stalled.value) return;
          await this.#ending.failNow(
            guest,
            "guest_panic",
            `The guest's agent did not respond for ${AGENT_LOST_MS / 1000} s.`,
          );
        }),
      stalled: (stands) =>
        this.#notice(async () => {
          if (this.guest !== guest) return;
          await this.#row.write(() => stalledChange(this.row, stands));
        }),
      health: () => this.#notice(() => this.#noteHealth(guest)),
    });
  }

  /** Shows faults of the guest's parts until they are repaired, without a change of state. */
  async #noteHealth(guest: Guest): Promise<void> {
    if (this.guest !== guest) return;
    const before = this.row;
    const { drive } = guest.health.value;
    const change = healthChange(before, guest.health.value);
    if (Object.keys(change).length === 0) return;
    await this.#row.write(() => change);
    if (before.drive_fault === null && drive) {
      this.#deps.onEvent("sandbox.drive_degraded", this.row, { message: drive.message });
    } else if (before.drive_fault !== null && !drive) {
      this.#deps.onEvent("sandbox.drive_restored", this.row, {}, "success");
    }
  }

  /** If it cannot be written now, because the disk is full, the reconciler finds it. */
  #notice(work: () => Promise<void>): void {
    this.#work.put(work).catch((error: unknown) =>
      this.#deps.log.error("failed to record the end of a sandbox", {
        sandbox_id: this.row.sandbox_id,
        error: describeError(error),
      }),
    );
  }
}

/** An error's text for callers. Paths of the host are not disclosed: only the last component of each is kept. */
function toldOf(error: unknown): string {
  return describeError(error).replaceAll(/(?:\/[\w.@-]+)+\/([\w.@-]+)/g, "$1");
}

function beingDestroyed(row: SandboxRow): ServiceError {
  return new ServiceError("invalid_state", {
    detail: `Sandbox ${row.agent_id} is being destroyed.`,
    details: { state: "destroying", allowed_states: ["running", "paused", "hibernated"] },
  });
}
