/** Owns a meter on a database of its own, under a clock that the test sets, and daemons that come and go. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { Meter, type Place } from "../../../../../daemon/domain/orgs/usage/meter.ts";
import { dayAt, type Moment } from "../../../../../daemon/domain/orgs/usage/moment.ts";
import { FREE, type Prices } from "../../../../../daemon/domain/orgs/usage/prices.ts";
import { totalsOf } from "../../../../../daemon/domain/orgs/usage/report.ts";
import type { Dimension } from "../../../../../daemon/domain/orgs/usage/store.ts";
import type { OrgId, RoomUid } from "../../../../../shared/ids.ts";

export const ORG = "org_1" as OrgId;
export const RATE = { vcpu_count: 2, memory_mib: 512, drive_bytes: 0 };
const ALWAYS = { from: "0000-01-01", to: "9999-12-31" };

export const placeOf = (agent_id: string, room = "rom_1", key_id = "kid_1"): Place => {
  return { org_id: ORG, room_uid: room as RoomUid, agent_id, key_id };
};

export class MeterFixture implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), "roomd-usage-"));
  #connection!: Connection;
  database!: Database;
  meter!: Meter;
  now: Moment;
  readonly prices: Prices;
  readonly #mostRows: number | undefined;

  constructor(start = "2026-01-31T22:00:00Z", prices = FREE, mostRows?: number) {
    this.prices = prices;
    this.#mostRows = mostRows;
    this.now = { wall_ms: Date.parse(start), uptime_ms: 1_000_000, boot_id: "first" };
    this.start();
  }

  /** A daemon on the database that there is. */
  start(): void {
    this.#connection = openConnection(join(this.#home, "roomd.db"));
    migrate(this.#connection);
    this.database = makeDatabase(this.#connection);
    const clock = { now: () => ({ ...this.now }), today: () => dayAt(this.now.wall_ms) };
    this.meter = new Meter(this.database, this.prices, clock, this.#mostRows);
  }

  /** The daemon ends without a word: what is not committed is lost. */
  kill(): void {
    this.#connection.close();
  }

  /** Time passes. */
  pass(seconds: number): void {
    this.now.wall_ms += Math.round(seconds * 1000);
    this.now.uptime_ms += Math.round(seconds * 1000);
  }

  /** The clock is set. */
  step(seconds: number): void {
    this.now.wall_ms += seconds * 1000;
  }

  /** The host starts anew, some time later. */
  reboot(seconds: number): void {
    this.step(seconds);
    this.now.uptime_ms = 20_000;
    this.now.boot_id = `boot at ${this.now.wall_ms}`;
  }

  opens(subject: string, place = placeOf("a")): Promise<void> {
    return this.database.commit((queries) => this.meter.opens(queries, subject, place, RATE));
  }

  closes(subject: string): Promise<void> {
    return this.database.commit((queries) => this.meter.closes(queries, subject));
  }

  totals(days = ALWAYS) {
    return totalsOf(this.meter.read(ORG, days, "day").values());
  }

  groups(by: Dimension, days = ALWAYS) {
    return Object.fromEntries([...this.meter.read(ORG, days, by)].map(([id, each]) => [id, totalsOf([each])]));
  }

  [Symbol.dispose](): void {
    this.#connection.close();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
