/** Heads that records of moves name: the other host's chain is compared with them. */
import { afterEach, beforeEach, expect, test } from "vitest";
import { wholly } from "../../../../../daemon/core/loop/steps.ts";
import { ServiceError } from "../../../../../daemon/core/service-error.ts";
import type { Connection } from "../../../../../daemon/db/client.ts";
import { type LocalDatabase, makeDatabase } from "../../../../../daemon/db/transact.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { checkChain } from "../../../../../daemon/domain/audit/chain/check.ts";
import {
  compareNamed,
  headToName,
  lostHeads,
  type OtherHosts,
} from "../../../../../daemon/domain/audit/chain/compare-named.ts";
import { purgeAudit } from "../../../../../daemon/domain/audit/retention.ts";
import { AUDIT_BEGAN_MS, append, auditDatabase, ORG } from "../audit-fixture.ts";

let [here, there]: [Connection, Connection] = [] as never;
let database: LocalDatabase;
beforeEach(() => {
  [here, there] = [auditDatabase(), auditDatabase()];
  database = makeDatabase(there);
});
afterEach(() => {
  here.close();
  there.close();
});

const others = (joinedAt: string | null = new Date(AUDIT_BEGAN_MS).toISOString()): OtherHosts => ({
  joinedAt: () => joinedAt,
  lostHeads: (_, orgId, heads, over) => lostHeads(database, orgId, heads, over),
});
const named = () => wholly(checkChain(here.queries, chainKey(ORG))).named;
const compared = (by = others()) => compareNamed(by, ORG, named());

/** Two moves, by which this host's chain names the heads 20 and 40 of the other. */
async function move(): Promise<void> {
  for (let n = 1; n <= 60; n++) {
    append(there, n);
    if (n !== 20 && n !== 40) continue;
    const head = await headToName(database, ORG);
    const details = n === 20 ? { from: "there", epoch: 2, head } : { to: "there", epoch: 3, head };
    append(here, n, { event: n === 20 ? "room.moved_in" : "room.moved_out", details });
  }
}

/** As an attacker who can write to the other host's data does. */
function tamper(...statements: string[]): void {
  for (const { name } of there.queries.all<{ name: string }>("SELECT name FROM sqlite_schema WHERE type = 'trigger'"))
    there.execute(`DROP TRIGGER ${name}`);
  for (const statement of statements) there.execute(statement);
}

test("are in an intact chain, also once they are purged", async () => {
  await move();
  expect(named()).toMatchObject([
    { host: "there", seq: 20 },
    { host: "there", seq: 40 },
  ]);
  expect(await compared()).toEqual({ contradicts: [], warnings: [] });
  purgeAudit(there.queries, chainKey(ORG), new Date(AUDIT_BEGAN_MS + 31_000).toISOString());
  expect(await compared()).toEqual({ contradicts: [], warnings: [] });
});

test("reveal a truncated chain, and one with other records since", async () => {
  await move();
  tamper("DELETE FROM audit WHERE seq >= 30", "UPDATE audit_heads SET seq = 29");
  expect((await compared()).contradicts).toEqual([{ host: "there", seq: 40 }]);
  tamper("DELETE FROM audit", "DELETE FROM audit_heads");
  for (let n = 1; n <= 60; n++) append(there, n, { actor: { type: "key", id: "kid_other", name: "other" } });
  expect((await compared()).contradicts).toEqual([20, 40].map((seq) => ({ host: "there", seq })));
});

test("are not compared with a host that joined later or was removed, and a silent host is a warning", async () => {
  await move();
  tamper("DELETE FROM audit", "DELETE FROM audit_heads");
  const joinedAt = new Date(AUDIT_BEGAN_MS + 30_000).toISOString();
  expect((await compared(others(joinedAt))).contradicts).toEqual([{ host: "there", seq: 40 }]);
  expect(await compared(others(null))).toEqual({ contradicts: [], warnings: [] });
  const lostBy = () => Promise.reject(new ServiceError("host_unreachable"));
  expect((await compared({ ...others(), lostHeads: lostBy })).warnings).toEqual([expect.stringContaining("there")]);
});

test("are compared as long as the other host waits, and only they count as lost", async () => {
  await move();
  const over = AbortSignal.abort(new Error("the host has left"));
  await expect(lostHeads(database, ORG, named(), over)).rejects.toThrow("the host has left");
  const manySeqs = Array.from({ length: 100_000 }, (_, seq) => seq + 21);
  const { contradicts } = await compared({ ...others(), lostHeads: async () => manySeqs });
  expect(contradicts).toEqual([{ host: "there", seq: 40 }]);
});

test("are named once they are on disk", async () => {
  const disk = Promise.withResolvers<void>();
  const slow = makeDatabase(there, () => false, { sync: () => disk.promise, close: () => {} });
  append(there, 1);
  let isNamed = false;
  const naming = headToName(slow, ORG).then((head) => {
    isNamed = true;
    return head;
  });
  await Bun.sleep(50);
  expect(isNamed).toBe(false);
  disk.resolve();
  expect(await naming).toMatchObject({ seq: 1 });
});
