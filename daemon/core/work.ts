/**
 * Owns what a verb says of its work while it is at it: what it begins, what has come of it, what is to be kept together. Where the
 * call is on its way, and what a failure leaves of it, is edge/phase.ts.
 */

import type { AuditFacts } from "./audit-facts.ts";

/** What a call has begun, by its name or number; nothing secret. */
export type Begun = Record<string, string | number>;

export interface Work {
  /** With an Idempotency-Key: names the work, and is the same when the call has to be made again. */
  readonly ulid: string | undefined;
  /** What the same call had noted before the daemon ended, or it failed with 5xx: its work is to be gone on with. */
  readonly begun: Begun | undefined;
  /** What has happened where no transaction holds it: in the answer's `details` when a full disk or drive keeps the rest from being done. */
  effect: Record<string, unknown> | null;
  /** With an Idempotency-Key: notes what is begun, within the transaction that begins it. */
  note(begun: Begun): void;
  /** The same on its own, on disk before work begins that no transaction holds. */
  noteFirst(begun: Begun): Promise<void>;
  /**
   * Within the transaction that does the work: keeps the record of this call, and with an Idempotency-Key its answer. One commit
   * keeps what was done and what is said of it, so that nothing can end between the two. `each` are the facts of a record each, where
   * the call was several things.
   */
  keep(outcome: string, body: object, each?: readonly AuditFacts[]): void;
  /** Has `write` carried out in the transaction that keeps the record of this call. */
  along(write: () => void): void;
  /**
   * Has `hear` called when the record of this call is kept, or could not be: once, and with false where what was to be written along
   * came too late; at once where the call is over already, as when its key has ended.
   */
  whenSettled(hear: (recorded: boolean) => void): void;
}

/** Of a call that is not made, or whose caller keeps nothing. */
export class UnkeptWork implements Work {
  readonly ulid: string | undefined = undefined;
  readonly begun: Begun | undefined = undefined;
  effect: Work["effect"] = null;

  note(_begun: Begun): void {}

  async noteFirst(_begun: Begun): Promise<void> {}

  keep(_outcome: string, _body: object): void {}

  along(_write: () => void): void {}

  whenSettled(_hear: (recorded: boolean) => void): void {}
}
