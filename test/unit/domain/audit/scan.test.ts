/** Going through long chains: however many do it at once, others have their turn. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection } from "../../../../daemon/db/client.ts";
import { listAudit } from "../../../../daemon/domain/audit/rows.ts";
import { scanAudit } from "../../../../daemon/domain/audit/scan.ts";
import { longestTurn } from "../../../harness/longest-turn.ts";
import { append, auditDatabase, ORG } from "./audit-fixture.ts";

const RECORDS = 6_000;
let connection: Connection;
beforeAll(() => {
  connection = auditDatabase();
  connection.execute("BEGIN");
  for (let n = 1; n <= RECORDS; n++) append(connection, n);
  connection.execute("COMMIT");
});
afterAll(() => connection.close());

test("many who look for what is rare are answered as one is, and hold up others no longer", async () => {
  const { queries } = connection;
  const rare = { org_id: ORG, room_id: "room-9", outcome: "error", order: "desc" } as const;
  const find = async () => {
    const seqs: number[] = [];
    for await (const rows of scanAudit(queries, rare, 1000, new AbortController().signal))
      seqs.push(...rows.map(({ seq }) => seq));
    return seqs;
  };
  let found: number[][] = [];
  const longest = await longestTurn(async () => {
    found = await Promise.all(Array.from({ length: 100 }, find));
  });
  const expected = listAudit(queries, { ...rare, limit: RECORDS }).map(({ seq }) => seq);
  expect(expected.length).toBeGreaterThan(50);
  for (const seqs of found) expect(seqs).toEqual(expected);
  expect(longest).toBeLessThan(20);
});

test("who has left is looked for no more", async () => {
  const { queries } = connection;
  const left = new AbortController();
  const seen: number[] = [];
  const all = { org_id: ORG, outcome: "success", order: "asc" } as const;
  for await (const rows of scanAudit(queries, all, RECORDS, left.signal)) {
    seen.push(rows.length);
    left.abort();
  }
  // What is rare is looked for in pieces of the chain, of which this has two.
  expect(seen).toHaveLength(1);
  const whole: number[] = [];
  for await (const rows of scanAudit(queries, all, RECORDS, new AbortController().signal)) whole.push(rows.length);
  expect(whole).toHaveLength(2);
});
