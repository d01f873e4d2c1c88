/**
 * Records the end of each background execution once, as its guest reports it, and saves its output if requested. accounting.ts decides which
 * part records and which meters.
 *
 *     started, or found after a restart ──▶ the guest reports the end ──▶ recorded ──▶ settled: not reported again
 *
 * Only executions in `ExecutionRegistry` are recorded, so a guest cannot fill the audit with invented ends, and only the result is trusted
 * from its report: the host itself knows the starter and the command. After a restart a guest may have no more running executions than its
 * limit, and concurrent saves are bounded.
 */
import { KEPT_EXECUTION_BYTES, KEPT_MEMORY_BYTES } from "../../../../shared/agent-protocol/kept-output.ts";
import type { ExecState } from "../../../../shared/agent-protocol/messages.ts";
import { EXEC_ID_PATTERN, MAX_LIVE_EXECUTIONS } from "../../../../shared/api/executions.ts";
import { sleep } from "../../../core/clock.ts";
import type { Log } from "../../../core/log.ts";
import { describeError } from "../../../core/service-error.ts";
import { endedInGuest, listInGuest } from "../../../host/guest-link/exec.ts";
import type { GuestLink } from "../../../host/guest-link/handshake.ts";
import type { SandboxDeps } from "../deps.ts";
import { Gate } from "../lifecycle/admission.ts";
import type { Supervisors } from "../lifecycle/supervisors.ts";
import type { SandboxRow } from "../table.ts";
import type { Happening } from "./accounting.ts";
import { guestAccessOf } from "./guest-access.ts";
import { recordEnd, recordRolledBack, recordsOf } from "./record-end.ts";
import { type Beginner, ExecutionRegistry, TrackedExecution } from "./registry.ts";
import { saveOutput } from "./run/background.ts";
import { outputToOf } from "./run/request.ts";

const LINK_MS = 30_000;
/** Minimum interval of two requests to one guest, whatever it answers. */
const PAUSE_MS = 500;
/** Limit of executions that a restarted daemon lists; a guest keeps no more. */
const MAX_FOUND = MAX_LIVE_EXECUTIONS + KEPT_MEMORY_BYTES / KEPT_EXECUTION_BYTES;
const PAGE = 64;
const OVER: readonly string[] = ["failed", "destroying", "destroyed"];
const NEVER = new AbortController().signal;
const NAME = new RegExp(EXEC_ID_PATTERN);

/** The needed fields of an execution: there may be thousands. */
type ReportedExecution = Pick<ExecState, "exec_id" | "state" | "tag" | "note">;

interface Watched {
  known: ExecutionRegistry;
  /** Concurrent saves of output, as many as there may be executions. */
  saving: Gate;
  /** Whether the guest's running executions have been listed. */
  found: boolean;
}

/** Interface of a call that waits for an execution. */
export interface Attendance {
  /** Whether the execution belongs to another call, or was found after a restart: this call then does not account for it. */
  isRepeated: boolean;
  /** An earlier record has metered it. */
  foundMetered(): void;
  /** Whether the record that is being written now meters it. */
  meters(): boolean;
  /** The call has stopped waiting: whether the command may have started, and whether the call's own record contains the end. */
  leave(how: { began: boolean; recorded: boolean }): void;
}

const REPEATED: Attendance = { isRepeated: true, foundMetered: () => {}, meters: () => false, leave: () => {} };

const metered = (isMetered: boolean): Happening[] => (isMetered ? ["metered"] : []);

/** A command that has not ended; `argv` is null if it is unknown. */
export interface RunningCommand {
  exec_id: string;
  argv: readonly string[] | null;
  since: string;
  /** Of its beginning. */
  trace_id: string | null;
}

export class Completions {
  readonly #deps: SandboxDeps;
  readonly #supervisors: () => Supervisors;
  readonly #log: Log;
  readonly #watched = new Map<string, Watched>();

  constructor(deps: SandboxDeps, supervisors: () => Supervisors) {
    this.#deps = deps;
    this.#supervisors = supervisors;
    this.#log = deps.log;
  }

  /** Watches a running sandbox until its end; a repeated call does nothing. */
  watch(sandboxId: string): void {
    if (this.#watched.has(sandboxId)) return;
    const changed = () => {
      const row = this.#supervisors().get(sandboxId)?.row;
      if (row) this.#deps.onCommands(row.room_uid);
    };
    const watched = { known: new ExecutionRegistry(changed), saving: new Gate(MAX_LIVE_EXECUTIONS), found: false };
    this.#watched.set(sandboxId, watched);
    void this.#watch(sandboxId, watched).finally(() => {
      this.#watched.delete(sandboxId);
      watched.known.forgetAll();
    });
  }

  /** Running commands of a sandbox, without a request to its guest. */
  running(sandboxId: string): RunningCommand[] {
    const known = this.#watched.get(sandboxId)?.known.running() ?? [];
    return known.map(([exec_id, { by, since }]) => ({
      ...{ exec_id, argv: by?.argv ?? null, since },
      trace_id: by?.trace_id ?? null,
    }));
  }

  /** Whether an execution may run in a sandbox, with or without a waiting call. */
  hasAny(sandboxId: string): boolean {
    return (this.#watched.get(sandboxId)?.known.size ?? 0) > 0;
  }

  /** An execution runs in the background; `isMetered`: the record of the call that started it meters it. */
  begun(row: SandboxRow, execution: ReportedExecution, by: Beginner | null, isMetered = by !== null): void {
    const watched = this.#watched.get(row.sandbox_id);
    if (!watched) return;
    const { exec_id } = execution;
    const known = watched.known.get(exec_id) ?? watched.known.add(exec_id, by);
    if (known.duties.runs) return;
    watched.known.begun(known, by, ...metered(isMetered));
    this.#save(row, watched, execution);
  }

  /**
   * The sandbox was rolled back: executions that ran are gone, and those of the snapshot run again. Resolves once the former are in the
   * audit.
   */
  async rolledBack(sandboxId: string): Promise<void> {
    const watched = this.#watched.get(sandboxId);
    const row = this.#supervisors().get(sandboxId)?.row;
    if (!watched || !row) return;
    for (const [exec_id, known] of watched.known.running()) {
      await recordRolledBack(this.#deps, row, exec_id, known);
      watched.known.happened(exec_id, known, "told");
    }
    watched.found = false;
  }

  /** The record of the starting call was not stored. */
  unmetered(row: SandboxRow, execId: string): void {
    this.#watched.get(row.sandbox_id)?.known.get(execId)?.happened("unmetered");
  }

  /** A call waits for an execution. */
  attend(row: SandboxRow, execId: string, by: Beginner): Attendance {
    const own = this.#watched.get(row.sandbox_id)?.known;
    if (own?.get(execId)) return REPEATED;
    const known = own?.add(execId, by, "asked") ?? new TrackedExecution(by, "asked");
    let meters = false;
    return {
      isRepeated: false,
      foundMetered: () => known.happened("metered"),
      meters: () => {
        meters = known.duties.meters === "call";
        return meters;
      },
      leave: ({ began, recorded }) => {
        const how = recorded ? "answered" : began ? "left" : "never_begun";
        own?.happened(execId, known, ...metered(recorded && meters), how);
      },
    };
  }

  async #watch(sandboxId: string, watched: Watched): Promise<void> {
    let settled: string[] = [];
    for (;;) {
      const supervisor = this.#supervisors().get(sandboxId);
      if (!supervisor || OVER.includes(supervisor.row.state)) return;
      try {
        const { published } = supervisor;
        const row = await published.until(
          ({ state }) => state === "running" || OVER.includes(state),
          Number.POSITIVE_INFINITY,
        );
        if (OVER.includes(row.state)) return;
        const link = await supervisor.link(LINK_MS);
        if (!watched.found) {
          watched.found = true;
          settled = [];
          await this.#find(link, row, watched);
        }
        const ended = await endedInGuest(link, settled);
        settled = await this.#record(row, watched.known, ended);
      } catch (error) {
        this.#log.debug("failed to watch executions", { sandbox_id: sandboxId, error: describeError(error) });
      }
      await sleep(PAUSE_MS);
    }
  }

  /** Re-attaches to executions that an earlier daemon left running, or did not record. */
  async #find(link: GuestLink, row: SandboxRow, watched: Watched): Promise<void> {
    const found = await this.#listed(link);
    const ids = found.map(({ exec_id }) => exec_id);
    const unknown = new Set(ids.filter((execId) => !watched.known.get(execId)?.duties.runs));
    const before = await recordsOf(this.#deps.database.queries, row, [...unknown]);
    let running = 0;
    for (const execution of found) {
      const { exec_id } = execution;
      if (!unknown.has(exec_id)) {
        // A call or an earlier listing watches it, or its end has been recorded meanwhile.
        if (execution.state === "running") running++;
        continue;
      }
      const { by, isMetered, since } = before.begun.get(exec_id) ?? { by: null, isMetered: false, since: null };
      const known = watched.known.get(exec_id);
      // If its end is recorded, it is over, whatever the guest reports.
      if (before.finished.has(exec_id)) this.#save(row, watched, execution);
      else if (execution.state === "running") {
        if (running++ >= MAX_LIVE_EXECUTIONS) continue;
        this.begun(row, execution, by, isMetered);
        const started = watched.known.get(exec_id);
        if (started && since !== null) started.since = since;
      } else if (known) known.happened(...metered(isMetered));
      else {
        watched.known.add(exec_id, by, "found_over", ...metered(isMetered));
        this.#save(row, watched, execution);
      }
    }
  }

  /** Executions that callers may have started: a guest agent also lists those started in other ways. */
  async #listed(link: GuestLink): Promise<ReportedExecution[]> {
    const found: ReportedExecution[] = [];
    for (let after = 0, seen = 0; seen < MAX_FOUND; ) {
      const page = await listInGuest(link, after, PAGE);
      for (const { exec_id, state, tag, note } of page) {
        if (NAME.test(exec_id)) found.push({ exec_id, state, tag, note });
      }
      const last = page.at(-1)?.number ?? 0;
      if (last <= after) break;
      after = last;
      seen += page.length;
    }
    return found.slice(0, MAX_FOUND);
  }

  /** Records ended executions; returns their ids, which the guest need not report again. */
  async #record(row: SandboxRow, own: ExecutionRegistry, ended: readonly ExecState[]): Promise<string[]> {
    const settled: string[] = [];
    for (const execution of ended) {
      const { exec_id } = execution;
      const known = own.get(exec_id);
      if (known?.duties.waits) continue;
      // A forgotten execution is not recorded again.
      if (known) {
        await recordEnd(this.#deps, row, execution, known);
        own.happened(exec_id, known, "told");
      }
      settled.push(exec_id);
    }
    return settled;
  }

  #save(row: SandboxRow, { saving }: Watched, execution: ReportedExecution): void {
    const path = outputToOf(execution.tag);
    if (path === null || execution.note !== "") return;
    const { exec_id } = execution;
    const room = this.#deps.currentRoom(row.room_uid);
    const save = () =>
      saveOutput(guestAccessOf(this.#supervisors(), row.sandbox_id), exec_id, path, (streams) =>
        this.#deps.saveOutput(room, path, streams),
      );
    saving
      .through(row.org_id, save, NEVER)
      .catch((error: unknown) => this.#log.warn("failed to save output", { exec_id, error: describeError(error) }));
  }
}
