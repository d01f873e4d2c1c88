/** Records of calls that only read: a write of the database has a bounded number of them. */
import { expect, test } from "vitest";
import { AuditCommit, type AuditCommitDeps } from "../../../../daemon/edge/pipeline/audit-commit.ts";
import type { RequestContext } from "../../../../daemon/edge/pipeline/request-context.ts";

test("300 reads that end together are three writes", () => {
  const writes: unknown[] = [];
  const database = {
    commit: async () => {},
    commitWithin: async (ms: number, work: unknown) => {
      // Without a delay it has those before it be written.
      if (ms > 0) writes.push(work);
    },
  };
  const records = new AuditCommit({ database, auditReads: true } as unknown as AuditCommitDeps);
  const caller = { kind: "key", key_id: "key_1", org_id: "org_1", name: "k" };
  const context = {
    phase: { is: "found" },
    operation: { name: "me_get", method: "GET", audit: "me.read" },
    request: {},
    call: { caller, trace: { context: null }, audit: { details: {} } },
    rate: null,
    claim: null,
    hasAlong: false,
    startedAt: 0,
  } as unknown as RequestContext;
  for (let n = 0; n < 300; n++)
    expect(
      records.settle(context, { kind: "done", status: 200, done: { outcome: "ok" }, location: null, replayed: false }),
    ).toBeNull();
  expect(writes).toHaveLength(3);
});
