/** Backdates the audit records of a stopped daemon by `ms`: their timestamps are moved back, and their chains are hashed again. */
import { Database } from "bun:sqlite";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { GENESIS, hashOf } from "../../../daemon/domain/audit/chain/hash-chain.ts";
import type { AuditRow } from "../../../daemon/domain/audit/table.ts";
import type { TestDaemon } from "../daemon.ts";

export function ageAudit(daemon: TestDaemon, ms: number): void {
  const database = new Database(join(daemon.dataDir, "roomd.db"));
  const triggers = database
    .query<{ name: string; sql: string }, []>("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
    .all();
  const change = database.transaction(() => {
    for (const { name } of triggers) database.run(`DROP TRIGGER ${name}`);
    const heads = new Map<string, string>();
    for (const row of database.query<AuditRow, []>("SELECT * FROM audit ORDER BY org_key, seq").all()) {
      const at = new Date(Date.parse(row.at) - ms).toISOString();
      const prev_hash = heads.get(row.org_key) ?? GENESIS;
      const hash = hashOf({ ...row, at, prev_hash });
      database.run("UPDATE audit SET at = ?, prev_hash = ?, hash = ? WHERE org_key = ? AND seq = ?", [
        ...[at, prev_hash, hash],
        ...[row.org_key, row.seq],
      ]);
      database.run("UPDATE audit_heads SET hash = ? WHERE org_key = ?", [hash, row.org_key]);
      heads.set(row.org_key, hash);
    }
    for (const { sql } of triggers) database.run(sql);
  });
  change();
  database.close();
  rmSync(join(daemon.dataDir, "audit-heads.ndjson"), { force: true });
}
