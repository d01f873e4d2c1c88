/**
 * Calls with an Idempotency-Key that changed shared rows. The cluster directory has each with the host that carried it out, in the
 * transaction of the round that has its change, so the same call on another host is forwarded to its reply and no call is carried out
 * twice. No host has a copy: a round queries the directory, in one statement for all its calls.
 *
 *   trial   each change is tried as if its call were new ──▶ the calls of the changes that succeed
 *   note    INSERT … ON CONFLICT DO NOTHING: a call noted earlier is of the host that the directory names ⇒ the changes are retried
 */
import { IDEMPOTENCY_SECONDS } from "../../shared/api/headers.ts";
import type { Run } from "./connections.ts";

/** Identifies a call. */
export interface NamedCall {
  key_id: string;
  method: string;
  path: string;
  idempotency_key: string;
}

const KEY = "key_id, method, path, idempotency_key";
const GIVEN = `SELECT * FROM json_to_recordset($1::json) AS given (key_id text, method text, path text, idempotency_key text)`;

/** Inserts the calls and returns those noted earlier: the statement sees the table as it was before it. */
const NOTE = `
  WITH given AS (${GIVEN}),
       noted AS (INSERT INTO roomd.done_calls (${KEY}, host_id) SELECT ${KEY}, $2 FROM given ON CONFLICT DO NOTHING)
  SELECT ${KEY}, host_id FROM roomd.done_calls JOIN given USING (${KEY})`;
const WITHDRAW = `DELETE FROM roomd.done_calls WHERE (${KEY}) IN (${GIVEN})`;

/** The calls of one round. */
export class RoundCalls {
  readonly #hostId: string;
  /** Calls that were carried out earlier, each with its host. */
  readonly #earlier = new Map<string, string>();
  /** Calls noted by this round. */
  readonly #noted = new Map<string, NamedCall>();
  /** Calls of the successful changes of this trial, and of the current change. */
  #tried = new Map<string, NamedCall>();
  #current = new Map<string, NamedCall>();

  constructor(hostId: string) {
    this.#hostId = hostId;
  }

  beginTrial(): void {
    this.#tried = new Map();
  }

  beginChange(): void {
    this.#current = new Map();
  }

  /** Host that carried out the call of the current change earlier; null: none, and the call is noted if the change succeeds. */
  doneBy(call: NamedCall): string | null {
    const name = nameOf(call);
    const by = this.#tried.has(name) ? this.#hostId : this.#earlier.get(name);
    if (by !== undefined) return by;
    this.#current.set(name, call);
    return null;
  }

  endChange(): void {
    for (const [name, call] of this.#current) this.#tried.set(name, call);
  }

  /** Whether the changes of this trial have calls. */
  get hasAny(): boolean {
    return this.#tried.size > 0;
  }

  /** Notes the calls of the trial. Returns false if some were carried out earlier: then the trial must be repeated. Within the round. */
  async note(run: Run): Promise<boolean> {
    const pending = [...this.#tried].filter(([name]) => !this.#noted.has(name));
    if (pending.length > 0) {
      const { rows } = await run(NOTE, [JSON.stringify(pending.map(([, call]) => call)), this.#hostId]);
      const earlier = rows as unknown as (NamedCall & { host_id: string })[];
      for (const [name, call] of pending) this.#noted.set(name, call);
      for (const { host_id, ...call } of earlier) {
        this.#noted.delete(nameOf(call));
        this.#earlier.set(nameOf(call), host_id);
      }
      if (earlier.length > 0) return false;
    }
    // Notes of changes that failed in the repeated trial are withdrawn: they had succeeded before only because an earlier call was unknown.
    const failed = [...this.#noted].flatMap(([name, call]) => (this.#tried.has(name) ? [] : [call]));
    if (failed.length > 0) await run(WITHDRAW, [JSON.stringify(failed)]);
    return true;
  }
}

const nameOf = ({ key_id, method, path, idempotency_key }: NamedCall) =>
  JSON.stringify([key_id, method, path, idempotency_key]);

/** Rows deleted per statement, so that no round waits for long. */
const MAX_FORGOTTEN = 10_000;

/** Deletes calls with expired replies, up to a limit. Returns whether more may remain. Within a transaction. */
export async function forgetCalls(run: Run): Promise<boolean> {
  const { rows } = await run(
    `WITH old AS (SELECT ctid FROM roomd.done_calls WHERE at < now() - make_interval(secs => $1)
                   LIMIT ${MAX_FORGOTTEN} FOR UPDATE SKIP LOCKED),
          gone AS (DELETE FROM roomd.done_calls WHERE ctid IN (SELECT ctid FROM old) RETURNING 1)
     SELECT count(*)::integer AS forgotten FROM gone`,
    [IDEMPOTENCY_SECONDS],
  );
  return rows[0]?.forgotten === MAX_FORGOTTEN;
}
