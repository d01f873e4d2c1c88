/** Chains for tests: records of a made-up organization in a database in memory. */

import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import type { AuditEntry } from "../../../../daemon/domain/audit/entry.ts";
import { appendAudit } from "../../../../daemon/domain/audit/store.ts";

export const ORG = "org_test";
export const AUDIT_BEGAN_MS = Date.UTC(2026, 0, 1);

export function auditDatabase(): Connection {
  const connection = openConnection(":memory:");
  migrate(connection);
  return connection;
}

/** Appends the nth record of a chain, a second after the previous one. */
export function append({ queries }: Connection, n: number, more: Partial<AuditEntry> = {}): void {
  appendAudit(queries, { ...entry(n), ...more });
}

export function entry(n: number): AuditEntry {
  return {
    event: n % 3 ? "room.read" : "drive.written",
    outcome: n % 7 ? "success" : "error",
    at: new Date(AUDIT_BEGAN_MS + n * 1000).toISOString(),
    org_id: ORG,
    room_id: `room-${n % 10}`,
    room_uid: "rom_1",
    actor: { type: "key", id: "kid_1", name: "tester" },
    source: "rest",
    request_id: `req_${n}`,
    ip: "127.0.0.1",
    status: 200,
    duration_ms: n / 100,
    details: { n, text: "ü \u0000 \u2028" },
  };
}
