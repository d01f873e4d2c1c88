/**
 * Open SSH sessions and the audit record of their end: each is disconnected as soon as its sandbox has ended, its key was revoked or
 * removed, or its token was revoked or has expired.
 */

import type { AuditFacts } from "../../core/call/audit-facts.ts";
import type { RevocationWatch } from "../../core/call/revocation-watch.ts";
import { monotonicMs, now } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit } from "../audit/index.ts";
import type { SandboxReach } from "../sandboxes/access.ts";
import type { Credential } from "./credentials.ts";

export interface Session {
  credential: Credential;
  sandbox_id: string;
  /** Audit facts of the session. */
  facts: AuditFacts;
  ip: string | null;
  /** Ends the connection, with a message for its user. */
  cut(why: string): void;
  /** Resolves with the connection's counters once it has ended. */
  over: Promise<Record<string, unknown>>;
}

interface Open extends Session {
  end(reason: "sandbox_ended" | "unauthorized" | "service_stopping", sentence: string): void;
}

export const MOVES = "The room is moving to another host: log in again.";

interface SessionsDeps {
  database: Database;
  log: Log;
  sandboxes: SandboxReach;
  orgs: { holds: RevocationWatch };
}

export class Sessions {
  readonly #deps: SessionsDeps;
  readonly #all = new Set<Open>();

  constructor(deps: SessionsDeps) {
    this.#deps = deps;
  }

  /** Number of open sessions of a key or an access. */
  countOf(credentialId: string): number {
    return [...this.#all].filter(({ credential }) => credential.id === credentialId).length;
  }

  /** Watches a session until its end. */
  keep(session: Session): void {
    const { sandboxes, log, orgs } = this.#deps;
    const startedAt = monotonicMs();
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
    const { id, isCurrent } = session.credential;
    const letGo = orgs.holds.hold(id, isCurrent, () => own.end("unauthorized", "The key or token is no longer valid."));
    void sandboxes
      .ended(session.sandbox_id, over.signal)
      .then((state) =>
        own.end("sandbox_ended", sandboxes.isMoving(session.sandbox_id) ? MOVES : `The sandbox is ${state}.`),
      );
    const done = session.over.then(async (counts) => {
      over.abort();
      letGo();
      this.#all.delete(own);
      await this.#record(session, { reason, ...counts }, monotonicMs() - startedAt);
    });
    done.catch((error: unknown) => log.error("failed to write an audit record", { error: String(error) }));
  }

  /** Why a session's command ended unexpectedly, as a sentence for the person at it. */
  whyLost(sandboxId: string): string {
    return this.#deps.sandboxes.isMoving(sandboxId) ? MOVES : "the guest was lost";
  }

  stop(): void {
    for (const session of [...this.#all]) session.end("service_stopping", "The service is stopping.");
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
