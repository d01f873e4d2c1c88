/**
 * Owns the sessions that are open: each is cut as soon as its sandbox has ended, its key was revoked or removed, or its token
 * was withdrawn or has expired; the record of its end.
 */
import { appendAudit } from "../audit/index.ts";
import { now } from "../core/clock.ts";
import type { Log } from "../core/log.ts";
import type { AuditFacts } from "../core/operation.ts";
import type { Database } from "../db/transact.ts";
import type { SandboxReach } from "../sandboxes/access.ts";
import type { Credential } from "./credentials.ts";

/** A key that was revoked is noticed after this time. */
const LOOK_MS = 500;

export interface Session {
  credential: Credential;
  sandbox_id: string;
  /** Names what the session is about in its records. */
  facts: AuditFacts;
  ip: string | null;
  /** Ends the connection, with a sentence for the person at it. */
  cut(why: string): void;
  /** Resolves with what there was to count once the connection has ended. */
  over: Promise<Record<string, unknown>>;
}

interface Open extends Session {
  end(reason: "sandbox_ended" | "unauthorized" | "service_stopping", sentence: string): void;
}

export class Sessions {
  readonly #deps: { database: Database; log: Log; sandboxes: SandboxReach };
  readonly #all = new Set<Open>();
  #timer: Timer | undefined;

  constructor(deps: { database: Database; log: Log; sandboxes: SandboxReach }) {
    this.#deps = deps;
  }

  /** Open sessions of a key or an access. */
  countOf(credentialId: string): number {
    return [...this.#all].filter(({ credential }) => credential.id === credentialId).length;
  }

  /** Watches over a session until it is over. */
  keep(session: Session): void {
    const { sandboxes, log } = this.#deps;
    const startedAt = performance.now();
    const over = new AbortController();
    let reason = "left";
    const own: Open = {
      ...session,
      end: (why, sentence) => {
        reason = why;
        session.cut(sentence);
      },
    };
    this.#all.add(own);
    this.#timer ??= setInterval(() => this.look(), LOOK_MS);
    void sandboxes
      .ended(session.sandbox_id, over.signal)
      .then((state) => own.end("sandbox_ended", `The sandbox is ${state}.`));
    const done = session.over.then(async (counts) => {
      over.abort();
      this.#all.delete(own);
      if (this.#all.size === 0) this.#stopLooking();
      await this.#record(session, { reason, ...counts }, performance.now() - startedAt);
    });
    done.catch((error: unknown) => log.error("audit not written", { error: String(error) }));
  }

  /** Cuts the sessions whose credential is no longer good; once per credential, however many there are. */
  look(): void {
    const known = new Map<string, boolean>();
    for (const session of [...this.#all]) {
      const { id, isCurrent } = session.credential;
      if (!known.has(id)) known.set(id, isCurrent());
      if (!known.get(id)) session.end("unauthorized", "The key or token is no longer good.");
    }
  }

  stop(): void {
    this.#stopLooking();
    for (const session of [...this.#all]) session.end("service_stopping", "The service is stopping.");
  }

  #stopLooking(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }

  async #record({ credential, facts, ip }: Session, details: Record<string, unknown>, durationMs: number) {
    const { caller, kind, id } = credential;
    await this.#deps.database.commit((queries) =>
      appendAudit(queries, {
        ...facts,
        event: "ssh.session_closed",
        outcome: "success",
        at: now(),
        org_id: caller.org_id,
        actor: { type: "key", id: caller.key_id, name: caller.name },
        source: "ssh",
        ip,
        duration_ms: Math.round(durationMs),
        details: { method: kind, credential_id: id, ...details },
      }),
    );
  }
}
