/** Going through long chains: however many do it at once, others have their turn. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Connection, Queries } from "../../../../daemon/db/client.ts";
import { listAudit } from "../../../../daemon/domain/audit/rows.ts";
import { scanAudit } from "../../../../daemon/domain/audit/scan.ts";
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
  let asked = 0;
  const counted = new Proxy(queries, {
    get: (target, name) => {
      if (name === "select") asked++;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  }) as Queries;
  const rare = { org_id: ORG, room_id: "room-9", outcome: "error", order: "desc" } as const;
  const find = async () => {
    const seqs: number[] = [];
    for await (const rows of scanAudit(counted, rare, 1000, new AbortController().signal))
      seqs.push(...rows.map(({ seq }) => seq));
    return seqs;
  };
  let isOver = false;
  const found = Promise.all(Array.from({ length: 20 }, find)).finally(() => {
    isOver = true;
  });
  const inTurns: number[] = [];
  for (let before = 0; !isOver; ) {
    await new Promise((resolve) => setImmediate(resolve));
    inTurns.push(asked - before);
    before = asked;
  }
  const expected = listAudit(queries, { ...rare, limit: RECORDS }).map(({ seq }) => seq);
  expect(expected.length).toBeGreaterThan(50);
  for (const seqs of await found) expect(seqs).toEqual(expected);
  // A piece asks where it ends, and for what is in it; two may fall between two looks.
  expect(Math.max(...inTurns)).toBeLessThanOrEqual(4);
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
