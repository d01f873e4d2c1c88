/** A meter on a separate database, under a clock that the test moves, with daemons that start and end. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { type Consumer, Meter } from "../../../../../daemon/domain/orgs/usage/meter.ts";
import { FREE, type Prices } from "../../../../../daemon/domain/orgs/usage/prices.ts";
import { totalsOf } from "../../../../../daemon/domain/orgs/usage/report.ts";
import type { Dimension } from "../../../../../daemon/domain/orgs/usage/store.ts";
import type { OrgId, RoomUid } from "../../../../../shared/ids.ts";
import { MovedClock } from "../../../../harness/hosts/moved-clock.ts";

export const ORG = "org_1" as OrgId;
export const RATE = { vcpu_count: 2, memory_mib: 512, drive_bytes: 0 };
const ALWAYS = { from: "0000-01-01", to: "9999-12-31" };

export const placeOf = (agent_id: string, room = "rom_1", key_id = "kid_1"): Consumer => {
  return { org_id: ORG, room_uid: room as RoomUid, agent_id, key_id };
};

export class MeterFixture implements Disposable {
  readonly #home = mkdtempSync(join(tmpdir(), "roomd-usage-"));
  #connection!: Connection;
  database!: Database;
  meter!: Meter;
  readonly #clock: MovedClock;
  readonly prices: Prices;
  readonly #mostRows: number | undefined;

  constructor(start = "2026-01-31T22:00:00Z", prices = FREE, mostRows?: number) {
    this.prices = prices;
    this.#mostRows = mostRows;
    this.#clock = new MovedClock(start);
    this.start();
  }

  /** A daemon on the database that there is. */
  start(): void {
    this.#connection = openConnection(join(this.#home, "roomd.db"));
    migrate(this.#connection);
    this.database = makeDatabase(this.#connection);
    this.meter = new Meter(this.database, this.prices, this.#mostRows);
  }

  /** The daemon is killed: uncommitted data is lost. */
  kill(): void {
    this.#connection.close();
  }

  /** Time passes. */
  pass(seconds: number): void {
    this.#clock.pass(Math.round(seconds * 1000));
  }

  /** The wall clock is set. */
  step(seconds: number): void {
    this.#clock.step(seconds * 1000);
  }

  /** The host reboots, some time later: open rows in its database are of an earlier boot. */
  reboot(seconds: number): void {
    this.step(seconds);
    const connection = openConnection(join(this.#home, "roomd.db"));
    connection.execute("UPDATE usage_open SET boot_id = 'before', uptime_ms = 1000000000");
    connection.close();
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
    this.#clock[Symbol.dispose]();
    rmSync(this.#home, { recursive: true, force: true });
  }
}
