/**
 * Outbox: an e-mail is enqueued in the same commit as the change that it is about, and retried until the mail server has accepted it, or a
 * day is over. Its link is re-created for each attempt, so that no copy of the link is stored.
 */
import { and, count, eq, gt, inArray, isNotNull, isNull, lt, lte, ne } from "drizzle-orm";
import { type LinkId, type MailId, newId, type UserId } from "../../../shared/ids.ts";
import { after, at, now, wallMs } from "../../core/clock.ts";
import { repeat } from "../../core/concurrency/repeat.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { locally, twice } from "../../db/dry-run.ts";
import type { OutboxDeps } from "./deps.ts";
import type { MailPlan } from "./plan.ts";
import { MailError, sendMail } from "./smtp.ts";
import { type MailRow, mails } from "./table.ts";
import { type EmailKind, renderEmail } from "./templates.ts";

/** Poll interval for due e-mails, including e-mails enqueued by another process. */
const LOOK_MS = 1000;
const AT_ONCE = 2;
const DAY_SECONDS = 86_400;
/** Per address, day and group: a bound for the inbox, and strangers cannot use up the e-mails of its owner. */
const MAX_TO_ADDRESS = 5;
const OF_STRANGERS: readonly EmailKind[] = ["signup", "request", "known", "approved"];
/** A warning that earlier e-mails must not displace. Each concerns an address that was verified by e-mail, and those are few. */
const ALWAYS: readonly EmailKind[] = ["moved"];
/** After this time another recovery e-mail is always sent, so that the owner has a valid link. */
const RECOVER_AGAIN_SECONDS = 3600;
/** E-mails per day that one person requests. */
const MAX_OF_USER = 50;
/** Delays before retries, in seconds; the last one repeats. */
const AGAIN_SECONDS = [5, 30, 120, 600, 1800, 7200];
/** Row that is written if no e-mail is sent, so that the work is the same. */
const NOBODY = "mal_nobody" as MailId;

export interface NewMail {
  kind: EmailKind;
  to: string;
  /** The signed-in user that requests it; null if not signed in. */
  user_id: UserId | null;
  /** Link that the reader follows; null: no link. */
  link_id: LinkId | null;
}

/**
 * Within a transaction; this host sends the e-mail. False: the address has reached its limit for the day. Throws rate_limited if the person
 * has.
 */
export function post(queries: Queries, mail: NewMail): boolean {
  return twice(queries, (within) => postHere(within, mail));
}

function postHere(queries: Queries, { kind, to, user_id, link_id }: NewMail): boolean {
  const created_at = now();
  if (user_id !== null && countSince(queries, eq(mails.user_id, user_id)) >= MAX_OF_USER) {
    throw new ServiceError("rate_limited", {
      detail: `At most ${MAX_OF_USER} e-mails in a day are sent for one user.`,
      retryAfterSeconds: 3600,
    });
  }
  if (!hasRoomFor(queries, to, kind) && !ALWAYS.includes(kind)) {
    insertNothing(queries);
    return false;
  }
  const row = { mail_id: newId("mal"), kind, to_address: to, user_id, link_id, created_at, attempts: 0 };
  queries
    .insert(mails)
    .values({ ...row, next_at: created_at, outcome: null })
    .run();
  return true;
}

/** Whether the address may receive one more e-mail of this kind today. */
export function hasRoomFor(queries: Queries, to: string, kind: EmailKind): boolean {
  const group = OF_STRANGERS.includes(kind) ? OF_STRANGERS : [kind];
  const condition = and(eq(mails.to_address, to), inArray(mails.kind, group), ne(mails.mail_id, NOBODY));
  const ofDay = countSince(queries, condition);
  if (kind !== "recover") return ofDay < MAX_TO_ADDRESS;
  const ofHour = countSince(queries, condition, RECOVER_AGAIN_SECONDS);
  return ofDay < MAX_TO_ADDRESS || ofHour === 0;
}

/** Same work as `post`, without sending, so that the duration reveals nothing. */
export function postNothing(queries: Queries, to: string, kind: EmailKind): void {
  hasRoomFor(queries, to, kind);
  locally(queries, insertNothing);
}

function insertNothing(queries: Queries): void {
  const row = { mail_id: NOBODY, kind: "test" as const, to_address: "", user_id: null, link_id: null };
  const written = { created_at: now(), attempts: 0, next_at: null, outcome: "void" as const };
  queries
    .insert(mails)
    .values({ ...row, ...written })
    .onConflictDoUpdate({ target: mails.mail_id, set: { created_at: written.created_at } })
    .run();
}

/** Number of e-mails of these kinds in the last day. */
export function countPosted(queries: Queries, kinds: readonly EmailKind[]): number {
  return kinds.reduce(
    (sum, kind) => sum + countSince(queries, and(eq(mails.kind, kind), ne(mails.mail_id, NOBODY))),
    0,
  );
}

function countSince(queries: Queries, condition: Parameters<typeof and>[0], seconds = DAY_SECONDS): number {
  const recent = and(condition, gt(mails.created_at, after(now(), -seconds)));
  return queries.select({ posted: count() }).from(mails).where(recent).get()?.posted ?? 0;
}

export class Outbox {
  readonly #deps: OutboxDeps;
  readonly #underWay = new Map<MailId, Promise<void>>();

  constructor(deps: OutboxDeps) {
    this.#deps = deps;
  }

  /** Sends due e-mails until the returned function is called, which resolves once no sending is in progress. */
  start(): () => Promise<void> {
    const { log } = this.#deps;
    const stop = repeat(LOOK_MS, async () => {
      await this.#look().catch((error: unknown) =>
        log.error("failed to process the mail queue", { error: describeError(error) }),
      );
    });
    return async () => {
      stop();
      await Promise.all(this.#underWay.values());
    };
  }

  async #look(): Promise<void> {
    const { database, plan } = this.#deps;
    if (plan === null) return;
    const { queries } = database;
    const dayAgo = at(wallMs() - DAY_SECONDS * 1000);
    const isOver = and(isNull(mails.next_at), lt(mails.created_at, dayAgo));
    if (queries.select({ id: mails.mail_id }).from(mails).where(isOver).limit(1).get()) {
      await database.commit((within) => within.delete(mails).where(isOver).run());
    }
    const isDue = and(isNotNull(mails.next_at), lte(mails.next_at, now()));
    const due = queries.select().from(mails).where(isDue).orderBy(mails.next_at).limit(AT_ONCE).all();
    for (const row of due) {
      if (this.#underWay.has(row.mail_id) || this.#underWay.size >= AT_ONCE) continue;
      const sending = this.#send(plan, row).finally(() => {
        this.#underWay.delete(row.mail_id);
        // More e-mails may be due: check again immediately.
        if (due.length >= AT_ONCE) void this.#look().catch(() => undefined);
      });
      this.#underWay.set(row.mail_id, sending);
    }
  }

  /** Never rejects. */
  async #send(plan: MailPlan, { mail_id, kind, to_address, link_id, attempts, created_at }: MailRow): Promise<void> {
    const { database, shared, log, url } = this.#deps;
    const end = (outcome: NonNullable<MailRow["outcome"]>) => ({ next_at: null, outcome });
    const change = (set: Partial<MailRow>) =>
      database.commit((queries) => queries.update(mails).set(set).where(eq(mails.mail_id, mail_id)).run());
    try {
      const path = link_id === null ? "" : await shared.commit((queries) => this.#deps.relink(queries, link_id));
      if (path === null) return void (await change(end("void")));
      await sendMail(plan, to_address, renderEmail(kind, { url: url(), link: path === "" ? "" : url() + path }));
      await change({ ...end("sent"), attempts: attempts + 1 });
      log.info("mail sent", { mail_id, kind });
    } catch (error) {
      const wait = AGAIN_SECONDS[Math.min(attempts, AGAIN_SECONDS.length - 1)] ?? 0;
      const next_at = after(now(), wait);
      const isOver = next_at > after(created_at, DAY_SECONDS);
      const isRefused = error instanceof MailError && error.isFinal;
      const fields = { mail_id, kind, attempts: attempts + 1, error: describeError(error) };
      log.warn(
        isRefused || isOver ? "failed to send an e-mail; giving up" : "failed to send an e-mail; will retry",
        fields,
      );
      const set = isRefused ? end("refused") : isOver ? end("expired") : { next_at };
      await change({ ...set, attempts: attempts + 1 }).catch((failed: unknown) =>
        log.error("failed to write the outcome of an e-mail", { mail_id, error: describeError(failed) }),
      );
    }
  }
}
