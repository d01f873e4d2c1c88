/** Owns all clients at terminals: who has to go when a key or a sandbox does, and the record of their going. */
import type { TerminalClose } from "../../shared/api/terminals.ts";
import type { KeyId } from "../../shared/ids.ts";
import { appendAudit } from "../audit/index.ts";
import { now } from "../core/clock.ts";
import type { KeyCall } from "../core/operation.ts";
import type { TerminalDeps } from "./index.ts";
import type { Session, SessionEnd } from "./session.ts";

/** A key that was revoked is noticed after this time. */
const LOOK_AT_KEYS_MS = 500;

export class Sessions {
  readonly #deps: TerminalDeps;
  readonly #all = new Map<Session, KeyId>();
  #timer: Timer | undefined;

  constructor(deps: TerminalDeps) {
    this.#deps = deps;
  }

  /** Watches over a session until it is over. */
  keep(call: KeyCall, sandboxId: string, terminalId: string, session: Session): void {
    const { sandboxes, log } = this.#deps;
    const over = new AbortController();
    this.#all.set(session, call.caller.key_id);
    this.#timer ??= setInterval(() => this.#lookAtKeys(), LOOK_AT_KEYS_MS);
    void sandboxes
      .stopped(sandboxId, over.signal)
      .then((state) => session.end("sandbox_stopped", `the sandbox is ${state}`));
    const startedAt = performance.now();
    const done = sandboxes
      .use(sandboxId, () => session.over)
      .then(async (end) => {
        over.abort();
        this.#all.delete(session);
        if (this.#all.size === 0) this.#stopLooking();
        await this.#record(call, terminalId, end, performance.now() - startedAt);
      });
    done.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
  }

  stop(): void {
    this.#stopLooking();
    this.#endAll("going_away", "the service is stopping");
  }

  #endAll(why: TerminalClose, message: string): void {
    for (const session of [...this.#all.keys()]) session.end(why, message);
  }

  #lookAtKeys(): void {
    const gone = new Set([...new Set(this.#all.values())].filter((keyId) => !this.#deps.isCurrentKey(keyId)));
    for (const [session, keyId] of [...this.#all]) {
      if (gone.has(keyId)) session.end("unauthorized", "the key is no longer good");
    }
  }

  #stopLooking(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  /** What was typed and shown is nobody's business; how much it was is. */
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
