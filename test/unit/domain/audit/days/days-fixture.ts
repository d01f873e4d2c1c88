/** A database in a separate file, with chains over several days, for tests of closed days. */
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { type Connection, openConnection } from "../../../../../daemon/db/client.ts";
import { migrate } from "../../../../../daemon/db/migrate.ts";
import { type LocalDatabase, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { closeDays, type DaysDeps } from "../../../../../daemon/domain/audit/days/close.ts";
import { appendAudits } from "../../../../../daemon/domain/audit/store.ts";
import { AUDIT_BEGAN_MS, entry, ORG } from "../audit-fixture.ts";

export const OTHER = "org_other";
export const DAY_MS = 24 * 3600 * 1000;
/** Of a day. */
export const RECORDS = 120;

export class Days implements AsyncDisposable {
  readonly home = mkdtempSync(join(tmpdir(), "roomd-days-"));
  readonly file = join(this.home, "roomd.db");
  readonly directory = join(this.home, "audit");
  connection: Connection;
  database: LocalDatabase;

  constructor() {
    this.connection = openConnection(this.file);
    migrate(this.connection);
    this.database = makeDatabase(this.connection);
  }

  get queries() {
    return this.connection.queries;
  }

  get deps(): DaysDeps {
    return { database: this.database, log: makeLog("error"), file: this.file };
  }

  /** Records of two organizations and of none on a day, in any order of their seconds within some. */
  async add(day: number, records = RECORDS): Promise<void> {
    await this.database.commit((queries) => {
      for (let n = 0; n < records; n++) {
        const at = new Date(AUDIT_BEGAN_MS + day * DAY_MS + n * 600_000).toISOString();
        const org_id = n % 10 === 0 ? null : n % 4 === 0 ? OTHER : ORG;
        const room = `rom_${n % 3}`;
        appendAudits(queries, [
          { ...entry(n), at, org_id, room_uid: room, details: { n, exec_id: `exe_${day}_${n}` } },
        ]);
      }
    });
  }

  close(): Promise<void> {
    return closeDays(this.deps, new AbortController().signal);
  }

  /** As another process finds it. */
  async reopen(): Promise<void> {
    await this.database.close();
    this.reconnect();
  }

  reconnect(): void {
    this.connection = openConnection(this.file);
    this.database = makeDatabase(this.connection);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.database.close();
    rmSync(this.home, { recursive: true, force: true });
  }
}
