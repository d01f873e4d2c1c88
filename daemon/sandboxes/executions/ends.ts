/**
 * Owns what becomes known of executions that nobody waits for: their ends, told by their guests, are recorded once each; what is
 * to be saved of them is saved; and while one runs its sandbox is not idle. A meter of executions belongs here.
 *
 *   begun, or found after a restart ──▶ the guest tells of the end ──▶ recorded ──▶ settled: the guest need not tell again
 *
 * Only executions that are known here are recorded, so a guest cannot fill the audit with ends of its own making.
 */
import type { ExecState } from "../../../shared/agent-protocol/messages.ts";
import type { Log } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { saveOutput } from "../../executions/background.ts";
import { outputToOf } from "../../executions/request.ts";
import { endedInGuest, listInGuest } from "../../host/guest-link/exec.ts";
import type { GuestLink } from "../../host/guest-link/handshake.ts";
import type { SandboxDeps } from "../index.ts";
import type { Supervisors } from "../supervisors.ts";
import type { SandboxRow } from "../table.ts";
import { reachOf } from "./reach.ts";
import { type Beginner, isRecorded, recordEnd } from "./record-end.ts";

/** Longer than any daemon runs, and short enough for a timer. */
const FOREVER_MS = 2 ** 31 - 1;
const LINK_MS = 30_000;
/** Between two questions to one guest, whatever it answers. */
const PAUSE_MS = 500;
/** Executions that a restarted daemon looks at; a guest keeps fewer. */
const MOST_FOUND = 1024;
const PAGE = 64;
const OVER: readonly string[] = ["failed", "destroying", "destroyed"];

interface Known {
  /** Who began it; null when that was before this daemon. */
  by: Beginner | null;
  /** A caller waits for it, whose own record tells of its end. */
  attended: boolean;
  recorded: boolean;
  ended: PromiseWithResolvers<void>;
}

export class Ends {
  readonly #deps: SandboxDeps;
  readonly #supervisors: () => Supervisors;
  readonly #log: Log;
  readonly #known = new Map<string, Map<string, Known>>();

  constructor(deps: SandboxDeps, supervisors: () => Supervisors) {
    this.#deps = deps;
    this.#supervisors = supervisors;
    this.#log = deps.log;
  }

  /** Watches a running sandbox until it is over; again is nothing. */
  watch(sandboxId: string): void {
    if (this.#known.has(sandboxId)) return;
    const own = new Map<string, Known>();
    this.#known.set(sandboxId, own);
    void this.#watch(sandboxId, own).finally(() => {
      this.#known.delete(sandboxId);
      for (const { ended } of own.values()) ended.resolve();
    });
  }

  /** An execution has begun for which nobody waits. */
  begun(row: SandboxRow, execution: ExecState, by: Beginner | null): void {
    const known = this.#add(row.sandbox_id, execution.exec_id, by, false);
    if (!known) return;
    void this.#supervisors().use(row.sandbox_id, () => known.ended.promise);
    this.#save(row, execution);
  }

  /** A caller waits for an execution. What is returned says that it does no more, and whether its own record tells of the end. */
  attend(row: SandboxRow, execId: string, by: Beginner): (recorded: boolean) => void {
    const known = this.#add(row.sandbox_id, execId, by, true);
    return (recorded) => {
      if (known) Object.assign(known, { attended: false, recorded });
    };
  }

  #add(sandboxId: string, execId: string, by: Beginner | null, attended: boolean): Known | null {
    const own = this.#known.get(sandboxId);
    if (!own || own.has(execId)) return null;
    const known = { by, attended, recorded: false, ended: Promise.withResolvers<void>() };
    own.set(execId, known);
    return known;
  }

  async #watch(sandboxId: string, own: Map<string, Known>): Promise<void> {
    let found = false;
    let settled: string[] = [];
    for (;;) {
      const supervisor = this.#supervisors().get(sandboxId);
      if (!supervisor || OVER.includes(supervisor.row.state)) return;
      try {
        const { published } = supervisor;
        const row = await published.until(({ state }) => state === "running" || OVER.includes(state), FOREVER_MS);
        if (OVER.includes(row.state)) return;
        const link = await supervisor.link(LINK_MS);
        if (!found) await this.#find(link, row);
        found = true;
        const ended = await endedInGuest(link, settled);
        for (const execId of settled) own.delete(execId);
        settled = await this.#record(row, own, ended);
      } catch (error) {
        this.#log.debug("executions not watched", { sandbox_id: sandboxId, error: describeError(error) });
      }
      await Bun.sleep(PAUSE_MS);
    }
  }

  /** Takes over what an earlier daemon has left running, or not recorded. */
  async #find(link: GuestLink, row: SandboxRow): Promise<void> {
    for (let after = 0, seen = 0; seen < MOST_FOUND; ) {
      const page = await listInGuest(link, after, PAGE);
      for (const execution of page) {
        if (execution.state === "running") this.begun(row, execution, null);
        else if (this.#add(row.sandbox_id, execution.exec_id, null, false)) this.#save(row, execution);
      }
      const last = page.at(-1)?.number ?? 0;
      if (last <= after) return;
      after = last;
      seen += page.length;
    }
  }

  /** Records what has ended; returns what the guest need not tell again. */
  async #record(row: SandboxRow, own: Map<string, Known>, ended: readonly ExecState[]): Promise<string[]> {
    const settled: string[] = [];
    for (const execution of ended) {
      const known = own.get(execution.exec_id);
      if (known?.attended) continue;
      known?.ended.resolve();
      settled.push(execution.exec_id);
      if (!known || known.recorded) continue;
      const before = known.by === null && isRecorded(this.#deps.database.queries, row, execution);
      if (!before) await recordEnd(this.#deps.database, row, execution, known.by);
      known.recorded = true;
    }
    return settled;
  }

  #save(row: SandboxRow, execution: ExecState): void {
    const path = outputToOf(execution.tag);
    if (path === null || execution.note !== "") return;
    const { exec_id } = execution;
    const room = this.#deps.currentRoom(row.room_uid);
    saveOutput(reachOf(this.#supervisors(), row), exec_id, path, (streams) =>
      this.#deps.saveOutput(room, path, streams),
    ).catch((error: unknown) => this.#log.warn("output not saved", { exec_id, error: describeError(error) }));
  }
}
