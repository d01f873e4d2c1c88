/** Which records of a chain are not younger than a moment: by halves, whatever was purged. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { Notifier } from "../../../../../daemon/core/concurrency/notifier.ts";
import type { Connection } from "../../../../../daemon/db/client.ts";
import type { Reads } from "../../../../../daemon/db/readers/pool.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { Chains } from "../../../../../daemon/domain/audit/chain/forward-records.ts";
import { purgeAudit } from "../../../../../daemon/domain/audit/retention.ts";
import { AUDIT_BEGAN_MS, append, auditDatabase, ORG } from "../audit-fixture.ts";

/** Not used: single records only. */
const NO_READS = {} as Reads;

let connection: Connection;
beforeEach(() => {
  connection = auditDatabase();
});
afterEach(() => connection.close());

const momentOf = (n: number) => new Date(AUDIT_BEGAN_MS + n * 1000).toISOString();

test("upTo returns the last record not younger than a moment, at any position", () => {
  const chains = new Chains(connection.queries, NO_READS, new Notifier());
  expect(chains.upTo(ORG, momentOf(5))).toBe(0);
  for (let n = 1; n <= 37; n++) append(connection, n);
  for (let n = 0; n <= 37; n++) expect(chains.upTo(ORG, momentOf(n))).toBe(n);
  expect(chains.upTo(ORG, momentOf(17.5))).toBe(17);
  expect(chains.upTo(ORG, momentOf(100))).toBe(37);
  purgeAudit(connection.queries, chainKey(ORG), momentOf(21));
  expect([0, 19, 20, 21, 37].map((n) => chains.upTo(ORG, momentOf(n)))).toEqual([20, 20, 20, 21, 37]);
});
