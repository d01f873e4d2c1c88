/** All clients at terminals: disconnection when a key or a sandbox ends, and the audit record of their detachment. */

import type { KeyCall } from "../../core/call/operation.ts";
import { monotonicMs, now } from "../../core/clock.ts";
import { appendAudit } from "../audit/index.ts";
import type { TerminalDeps } from "./deps.ts";
import type { Session, SessionEnd } from "./session.ts";
import { placeOf, type Writers } from "./writers.ts";

export class Sessions {
  readonly #deps: TerminalDeps;
  readonly #all = new Set<Session>();

  readonly #typists: Writers;

  constructor(deps: TerminalDeps, typists: Writers) {
    this.#deps = deps;
    this.#typists = typists;
  }

  /** Watches a session until its end. */
  keep(call: KeyCall, sandboxId: string, terminalId: string, session: Session): void {
    const { sandboxes, log, holdKey } = this.#deps;
    const over = new AbortController();
    this.#all.add(session);
    const leave = this.#typists.enter(placeOf(sandboxId, terminalId), call.caller.name);
    const letGo = holdKey(call.caller.key_id, () => session.end("unauthorized", "the key is no longer valid"));
    void sandboxes
      .stopped(sandboxId, over.signal)
      .then((state) => session.end("sandbox_stopped", `the sandbox is ${state}`));
    const startedAt = monotonicMs();
    const done = sandboxes
      .use(sandboxId, () => session.over)
      .then(async (end) => {
        over.abort();
        letGo();
        leave();
        this.#all.delete(session);
        await this.#record(call, terminalId, end, monotonicMs() - startedAt);
      });
    done.catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
  }

  stop(): void {
    for (const session of [...this.#all]) session.end("going_away", "the service is stopping");
  }

  /** Input and output are private; only their amounts are recorded. */
  async #record(call: KeyCall, terminalId: string, end: SessionEnd, durationMs: number): Promise<void> {
    const { caller, audit } = call;
    await this.#deps.database.commit((queries) =>
      appendAudit(queries, {
        event: "exec.terminal_detached",
        outcome: "success",
        at: now(),
        org_id: caller.org_id,
        actor: { type: "key", id: caller.key_id, name: caller.name },
        source: call.source,
        request_id: call.request_id,
        ip: call.ip,
        duration_ms: Math.round(durationMs),
        ...audit,
        details: { terminal_id: terminalId, ...end },
      }),
    );
  }
}
