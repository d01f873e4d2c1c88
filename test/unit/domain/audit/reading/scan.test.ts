/** Scans of long chains on the event loop: however many run concurrently, others have their turn. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { parsed } from "../../../../../daemon/core/call/operation.ts";
import { loopTime, ownerOf, Pieces } from "../../../../../daemon/core/loop/index.ts";
import { inPieces } from "../../../../../daemon/core/loop/steps.ts";
import type { Connection } from "../../../../../daemon/db/client.ts";
import { readHere } from "../../../../../daemon/db/readers/here.ts";
import { readPage } from "../../../../../daemon/domain/audit/reading/reads.ts";
import { scanAudit } from "../../../../../daemon/domain/audit/reading/scan.ts";
import { listAudit } from "../../../../../daemon/domain/audit/rows.ts";
import type { AuditRecord } from "../../../../../shared/api/audit.ts";
import { boundOf, longestTurn } from "../../../../harness/event-loop/longest-turn.ts";
import { append, auditDatabase, ORG } from "../audit-fixture.ts";

const RECORDS = 6_000;
/** Together they take over 20 ms. */
const MANY = 100;
let connection: Connection;
beforeAll(() => {
  connection = auditDatabase();
  connection.execute("BEGIN");
  for (let n = 1; n <= RECORDS; n++) append(connection, n);
  connection.execute("COMMIT");
});
afterAll(() => connection.close());

const everyone = { owner: `org:${ORG}`, signal: new AbortController().signal } as const;

test("concurrent searches for rare records return the same as a single one, and yield to other work", async () => {
  const { queries } = connection;
  const rare = { org_id: ORG, room_id: "room-9", outcome: "error", order: "desc" } as const;
  const found: AuditRecord[][] = [];
  const find = async () => {
    const json = await readHere(readPage, queries, { kind: "", scan: rare, limit: 1000 }, everyone);
    found.push(parsed(json).items);
  };
  expect(await longestTurn(() => Promise.all(Array.from({ length: MANY }, find)))).toBeLessThan(boundOf(20));
  const expected = listAudit(queries, { ...rare, limit: RECORDS }).map(({ seq }) => seq);
  expect(expected.length).toBeGreaterThan(50);
  expect(found).toHaveLength(MANY);
  for (const items of found) expect(items.map(({ seq }) => seq)).toEqual(expected);
});

test("a scan ends when its caller disconnects", async () => {
  const left = new AbortController();
  const scan = { org_id: ORG, outcome: "success", order: "asc" } as const;
  const all = { kind: "", scan, limit: RECORDS };
  const sizes: number[] = [];
  const steps = (function* () {
    for (const rows of scanAudit(connection.queries, scan, 100)) {
      sizes.push(rows.length);
      left.abort();
      yield;
    }
  })();
  const pieces = new Pieces(loopTime, ownerOf(ORG), "audit", { signal: left.signal });
  await expect(inPieces(steps, pieces)).rejects.toThrow("aborted");
  // Steps of the piece under way are done: the scan has 60 of them.
  expect(sizes.length).toBeLessThan(20);
  expect(parsed(await readHere(readPage, connection.queries, all, everyone)).items.length).toBeGreaterThan(RECORDS / 2);
});
