/**
 * Records failed logins: invalid credentials. Anonymous clients can cause them at any rate, so only a burst and then a few per minute are
 * recorded each; the rest is counted per address, and the counts are recorded every minute.
 */
import type { Source } from "../../../shared/api/audit.ts";
import type { ErrorCode } from "../../../shared/api/errors.ts";
import { now, startTimer, stopTimer } from "../../core/clock.ts";
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit } from "../../domain/audit/index.ts";
import { Allowance } from "../../host/guest-link/pace.ts";

const EACH_PER_SECOND = 1 / 10;
const EACH_AT_ONCE = 64;
const TOGETHER_MS = 60_000;
/** Failed logins of further addresses are counted together, without an address. */
const MAX_ADDRESSES = 32;

export interface FailedLogin {
  source: Source;
  request_id: string;
  ip: string | null;
  error_code: ErrorCode;
}

export class FailedLogins {
  readonly #database: Database;
  readonly #log: Log;
  readonly #each = new Allowance(EACH_PER_SECOND, EACH_AT_ONCE);
  readonly #counted = new Map<string, { last: FailedLogin; count: number }>();
  #timer: Timer | null = null;
  #written: Promise<unknown> = Promise.resolve();

  constructor(database: Database, log: Log) {
    this.#database = database;
    this.#log = log;
  }

  /** Resolves when the records so far are on disk, except for those only counted. Never rejects. */
  get written(): Promise<unknown> {
    return this.#written;
  }

  note(failed: FailedLogin): void {
    if (this.#each.take()) {
      this.#record(failed, {});
      return;
    }
    const ip = this.#counted.has(failed.ip ?? "") || this.#counted.size < MAX_ADDRESSES ? failed.ip : null;
    const { count = 0 } = this.#counted.get(ip ?? "") ?? {};
    this.#counted.set(ip ?? "", { last: { ...failed, ip }, count: count + 1 });
    this.#timer ??= startTimer(() => this.settle(), TOGETHER_MS).unref();
  }

  /** Writes the counts to the audit. */
  settle(): void {
    stopTimer(this.#timer);
    this.#timer = null;
    for (const { last, count } of this.#counted.values()) this.#record(last, { count });
    this.#counted.clear();
  }

  #record(failed: FailedLogin, details: { count?: number }): void {
    const written = this.#database.commit(
      (queries) =>
        appendAudit(queries, {
          ...failed,
          event: "auth.failed",
          outcome: "denied",
          at: now(),
          org_id: null,
          actor: { type: "unknown", id: "", name: "" },
          status: 401,
          details,
        }),
      false,
    );
    this.#written = written.catch((error: unknown) =>
      this.#log.error("failed to write an audit record", { error: String(error) }),
    );
  }
}
