/**
 * The meter: consumption is counted in the transaction that causes it, and the sums of all transactions of a commit are written once, at
 * its end, and charged to the credits of the organization.
 *
 *     count                       events: an execution, a message, sent bytes
 *     opens ─ checkpoint ─ closes continuous use: a running sandbox, a drive that is not empty
 *
 * Continuous use is a row with the time up to which it was counted. A guest keeps running while no daemon does; the daemon that adopts it
 * opens it again, which counts all of that time. If a guest is found to have ended since, time counts up to the last checkpoint at which it
 * was seen: unobserved running time is not charged.
 */
import type { OrgId, RoomUid } from "../../../../shared/ids.ts";
import { at, wallMs } from "../../../core/clock.ts";
import { wholly } from "../../../core/loop/steps.ts";
import type { Queries } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { appendAudit } from "../../audit/index.ts";
import { type Amounts, add, amountsOver, NOTHING, type Rate } from "./amounts.ts";
import { momentNow } from "./clock.ts";
import { addUsed } from "./credits-store.ts";
import { enterSpent } from "./ledger.ts";
import { dayAt, daysOf, type Elapsed, elapsed, type Moment } from "./moment.ts";
import { FREE, microOf, microPerHour, type Prices } from "./prices.ts";
import { DayRows } from "./rows.ts";
import {
  addUsage,
  type Dimension,
  getOpen,
  openAfter,
  openDrives,
  openInRoom,
  openSandboxes,
  putOpen,
  removeOpen,
} from "./store.ts";
import { isInUse, type SumsInput, sumsOf } from "./sums.ts";
import type { OpenRow, UsageRow } from "./table.ts";

/** Write interval of continuous measurements; a crash of the daemon loses the unwritten part. */
export const USAGE_WRITE_SECONDS = 5;

/** Rows of continuous use that are counted in one commit: a few milliseconds. */
const COUNTED_TOGETHER = 100;

/** The consumer; agent_id and key_id are '' if there is no agent, or no key. */
export interface Consumer {
  org_id: OrgId;
  room_uid: RoomUid;
  agent_id: string;
  key_id: string;
}

export class Meter {
  readonly #database: Database;
  readonly #prices: Prices;
  readonly #rows: DayRows;
  /** Events since the daemon started, of all organizations together. */
  #happened = { messages: 0, exec_count: 0 };
  /** Usage counted by the current transaction. */
  readonly #counted: UsageRow[] = [];
  /** Sandboxes that this daemon has seen running. */
  readonly #seen = new Set<string>();

  /** Organizations with a change in use that is charged by time. */
  readonly #changed = new Set<OrgId>();

  constructor(database: Database, prices: Prices = FREE, mostRows?: number) {
    this.#database = database;
    this.#prices = prices;
    this.#rows = new DayRows(database, mostRows);
    database.beforeCommit((queries) => this.#write(queries));
  }

  /** Within a transaction. */
  count(place: Consumer, amounts: Partial<Amounts>): void {
    this.#add(place, dayAt(wallMs()), amounts);
  }

  /** Number of commands and messages since the daemon started. */
  get happened(): Readonly<Pick<Amounts, "messages" | "exec_count">> {
    return this.#happened;
  }

  /** Within a transaction: starts continuous use. A use that is already open is counted up to now, and continues. */
  opens(queries: Queries, subject: string, { org_id, room_uid, agent_id, key_id }: Consumer, rate: Rate): void {
    this.#changed.add(org_id);
    const now = momentNow();
    const open = getOpen(queries, subject);
    if (open) this.#countUpTo(queries, open, now);
    this.#seen.add(subject);
    putOpen(queries, { subject, org_id, room_uid, agent_id, key_id, ...rate, ...now });
  }

  /** Within a transaction: ends continuous use. */
  closes(queries: Queries, subject: string): void {
    const open = getOpen(queries, subject);
    if (!open) return;
    if (this.#goesOn(open)) this.#countUpTo(queries, open, momentNow());
    removeOpen(queries, subject);
    this.#changed.add(open.org_id);
  }

  /** Size of a drive from now on; within a transaction. */
  fills(queries: Queries, place: Consumer, drive_bytes: number): void {
    if ((getOpen(queries, place.room_uid)?.drive_bytes ?? 0) === drive_bytes) return;
    if (drive_bytes === 0) this.closes(queries, place.room_uid);
    else this.opens(queries, place.room_uid, place, { vcpu_count: 0, memory_mib: 0, drive_bytes });
  }

  /** Counts all continuous use up to now. */
  async checkpoint(): Promise<void> {
    const open = new Set<string>();
    let rows: OpenRow[];
    let after = "";
    do {
      rows = await this.#database.commit((queries) => this.#countSome(queries, after));
      for (const { subject } of rows) open.add(subject);
      after = rows.at(-1)?.subject ?? after;
    } while (rows.length === COUNTED_TOGETHER);
    const { queries } = this.#database;
    for (const subject of this.#seen) if (!open.has(subject) && !getOpen(queries, subject)) this.#seen.delete(subject);
  }

  /** Within a transaction: counts the next rows after a subject, and returns them. */
  #countSome(queries: Queries, after: string): OpenRow[] {
    const now = momentNow();
    const rows = openAfter(queries, after, COUNTED_TOGETHER);
    for (const row of rows.filter((each) => this.#goesOn(each))) {
      this.#countUpTo(queries, row, now);
      putOpen(queries, { ...row, ...now });
      // Another process may have granted credits, or changed the plan.
      this.#changed.add(row.org_id);
    }
    return rows;
  }

  /** Input for the sums of an organization's consumption on these days, both included, up to now. */
  sums(orgId: OrgId, days: { from: string; to: string }, by: Dimension): SumsInput {
    const running = this.#sandboxes(this.#database.queries, orgId).map(({ subject }) => subject);
    return { org_id: orgId, days, by, now: momentNow(), running };
  }

  /** Sums for each value of a dimension. */
  read(orgId: OrgId, days: { from: string; to: string }, by: Dimension): Map<string, Amounts> {
    return wholly(sumsOf(this.#database.queries, this.sums(orgId, days, by)));
  }

  /** Unwritten continuous use in a room. */
  runningIn(orgId: OrgId, roomUid: RoomUid): Amounts {
    const now = momentNow();
    const sum = { ...NOTHING };
    for (const open of openInRoom(this.#database.queries, orgId, roomUid)) {
      if (this.#goesOn(open)) add(sum, amountsOver(open, elapsed(open, now).ms));
    }
    return sum;
  }

  /** Cost of continuous use by the price table, in millionths of a credit: the unwritten part, and the rate per hour. */
  running(queries: Queries, orgId: OrgId): { micro: number; micro_per_hour: number; sandboxes: number } {
    const now = momentNow();
    const sandboxes = this.#sandboxes(queries, orgId);
    const sum = { micro: 0, micro_per_hour: 0, sandboxes: sandboxes.length };
    for (const open of [...sandboxes, ...openDrives(queries, orgId)]) {
      sum.micro += microOf(this.#prices, amountsOver(open, elapsed(open, now).ms));
      sum.micro_per_hour += microPerHour(this.#prices, open);
    }
    return sum;
  }

  /** Calls `listener` after each commit that changed an organization's continuous use, or its sent bytes. */
  onChange(listener: (orgId: OrgId) => void): void {
    this.#database.onCommit(() => {
      const changed = [...this.#changed];
      this.#changed.clear();
      for (const orgId of changed) listener(orgId);
    });
  }

  /** Running sandboxes of an organization. */
  #sandboxes(queries: Queries, orgId: OrgId): OpenRow[] {
    return openSandboxes(queries, orgId).filter((open) => this.#goesOn(open));
  }

  #goesOn(open: OpenRow): boolean {
    return isInUse(open, this.#seen);
  }

  #countUpTo(queries: Queries, open: OpenRow, now: Moment): void {
    const time = elapsed(open, now);
    if (time.beyond_ms > 0) recordCapped(queries, open, now, time);
    for (const { day, ms } of daysOf(now.wall_ms, time.ms)) this.#add(open, day, amountsOver(open, ms));
  }

  #add({ org_id, room_uid, agent_id, key_id }: Consumer, day: string, amounts: Partial<Amounts>): void {
    this.#counted.push({ org_id, day, room_uid, agent_id, key_id, ...NOTHING, ...amounts });
    this.#database.undo(this.#uncount);
  }

  /** Undo runs in reverse order. After the rows were written, none remains to remove. */
  readonly #uncount = () => void this.#counted.pop();

  #write(queries: Queries): void {
    const micro = new Map<OrgId, number>();
    const before = this.#happened;
    if (this.#counted.length > 0) {
      this.#happened = { ...before };
      this.#database.undo(() => {
        this.#happened = before;
      });
    }
    for (const sum of this.#rows.placed(queries, this.#counted.splice(0))) {
      addUsage(queries, sum);
      this.#happened.messages += sum.messages;
      this.#happened.exec_count += sum.exec_count;
      micro.set(sum.org_id, (micro.get(sum.org_id) ?? 0) + microOf(this.#prices, sum));
      if (sum.egress_bytes > 0) this.#changed.add(sum.org_id);
    }
    for (const [orgId, used] of micro) {
      if (used === 0) continue;
      addUsed(queries, orgId, used);
      enterSpent(queries, orgId, used);
    }
  }
}

/** The host's clock jumped while it was off: the time that is not charged is in the audit log. */
function recordCapped(queries: Queries, { org_id, room_uid, agent_id }: OpenRow, now: Moment, time: Elapsed): void {
  appendAudit(queries, {
    event: "usage.capped",
    outcome: "success",
    at: at(now.wall_ms),
    org_id,
    room_uid,
    ...(agent_id === "" ? {} : { agent_id }),
    actor: { type: "system", id: "usage", name: "usage" },
    source: "reconciler",
    details: {
      counted_seconds: Math.round(time.ms / 1000),
      not_counted_seconds: Math.round(time.beyond_ms / 1000),
    },
  });
}
