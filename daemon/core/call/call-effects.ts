/**
 * Reports of a verb about its work in progress: notes on started work, effects, and writes that must be atomic. The phase of the call, and
 * the result of a failure, are in edge/pipeline/phase.ts.
 */

import type { AuditFacts } from "./audit-facts.ts";

/** Work that a call has started, by its name or number; nothing secret. */
export type StartedWork = Record<string, string | number>;

export interface CallEffects {
  /** Present with an Idempotency-Key: names the work; a retry of the call has the same value. */
  readonly ulid: string | undefined;
  /** Notes of an earlier attempt, before the daemon ended, or the call failed with 5xx: its work must be continued. */
  readonly begun: StartedWork | undefined;
  /** Effect outside of any transaction: in the answer's `details` if a full disk or drive prevents the rest. */
  effect: Record<string, unknown> | null;
  /** With an Idempotency-Key: notes started work, within the transaction that starts it. */
  note(started: StartedWork): void;
  /** The same in a separate commit, durable before work starts that is in no transaction. */
  noteFirst(started: StartedWork): Promise<void>;
  /**
   * Within the transaction that does the work: stores the audit record of this call, and with an Idempotency-Key its answer. One commit
   * stores work and record, so that they are atomic. `each` are the facts of one record each, if the call did several things.
   */
  keep(outcome: string, body: object, each?: readonly AuditFacts[]): void;
  /** Runs `write` in the transaction that stores this call's audit record. */
  along(write: () => void): void;
  /**
   * Calls the listener once, when the record of this call is stored, or could not be; with false if the writes for `along` came too late;
   * immediately if the call is already over, for example because its key was revoked.
   */
  whenSettled(hear: (recorded: boolean) => void): void;
}

/** Work of a trial call, or of a caller that stores nothing. */
export class UnkeptEffects implements CallEffects {
  readonly ulid: string | undefined = undefined;
  readonly begun: StartedWork | undefined = undefined;
  effect: CallEffects["effect"] = null;

  note(_begun: StartedWork): void {}

  async noteFirst(_begun: StartedWork): Promise<void> {}

  keep(_outcome: string, _body: object): void {}

  along(_write: () => void): void {}

  whenSettled(_hear: (recorded: boolean) => void): void {}
}
