/** Anchors of chains with a lost closed day: the loss is recorded once, and later heads are anchored. */
import { chmodSync, rmSync, truncateSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import type { Anchor, AnchorStore } from "../../../../../daemon/core/anchor-store.ts";
import { makeLog } from "../../../../../daemon/core/log.ts";
import { lostAnchors } from "../../../../../daemon/domain/audit/anchors/anchored.ts";
import { Anchors } from "../../../../../daemon/domain/audit/anchors/anchors.ts";
import { chainHead } from "../../../../../daemon/domain/audit/chain/chain-head.ts";
import { chainKey } from "../../../../../daemon/domain/audit/chain/chain-key.ts";
import { listAudit } from "../../../../../daemon/domain/audit/rows.ts";
import { appendAudits } from "../../../../../daemon/domain/audit/store.ts";
import { AUDIT_BEGAN_MS, entry } from "../audit-fixture.ts";
import { DAY_MS, Days } from "./days-fixture.ts";

/** Insert-only, in memory. */
class StoredAnchors implements AnchorStore {
  readonly #anchors: Anchor[] = [];

  async add(anchors: readonly Anchor[]): Promise<void> {
    this.#anchors.push(...anchors);
  }

  async last(): Promise<Anchor[]> {
    const newest = new Map<string | null, Anchor>();
    for (const anchor of this.#anchors)
      if (anchor.seq > (newest.get(anchor.org_id)?.seq ?? 0)) newest.set(anchor.org_id, anchor);
    return [...newest.values()];
  }

  async after(orgId: string | null, seq: number, limit: number): Promise<Anchor[]> {
    const own = this.#anchors.filter((anchor) => anchor.org_id === orgId && anchor.seq > seq);
    return own.sort((a, b) => a.seq - b.seq).slice(0, limit);
  }
}

const HOST = chainKey(null);
const EVENT = "audit.anchor_lost";
const recorded = ({ queries }: Days, after = 0) =>
  listAudit(queries, { org_id: null, event: EVENT, order: "asc", after, limit: 100 }).length;

test.each([
  ["removed", (file: string) => rmSync(file)],
  ["damaged", (file: string) => [chmodSync(file, 0o600), truncateSync(file, 8192)]],
])("a host chain with a day that is %s is anchored again once the loss is recorded", async (_, damage) => {
  await using days = new Days();
  const store = new StoredAnchors();
  const anchored = async () => (await store.last()).find(({ org_id }) => org_id === null)?.seq;
  /** As a daemon does from its start to its end. */
  const run = async () => {
    const { database } = days;
    const anchors = new Anchors({ database, log: makeLog("error", () => {}), store, intervalMs: 60_000 });
    await anchors.settle();
    await anchors.stop();
    return anchors.lost;
  };
  for (const day of [0, 1]) await days.add(day);
  expect(await run()).toBe(0);
  await days.close();
  damage(join(days.directory, "2026-01-02.db"));
  await days.reopen();
  const closed = chainHead(days.queries, HOST)?.seq ?? 0;
  expect(await run()).toBe(3);
  expect(await anchored()).toBe(chainHead(days.queries, HOST)?.seq);
  expect(recorded(days, closed)).toBe(3);
  // The next daemon finds the same chains lost, without another record.
  await days.add(2);
  await days.reopen();
  expect(await run()).toBe(3);
  expect(await anchored()).toBe(chainHead(days.queries, HOST)?.seq);
  expect(recorded(days, closed)).toBe(3);
});

test("records of lost anchors from before the lost day count", async () => {
  await using days = new Days();
  const store = new StoredAnchors();
  for (const day of [0, 1]) await days.add(day);
  const seq = 5;
  const at = new Date(AUDIT_BEGAN_MS + 1.9 * DAY_MS).toISOString();
  await days.database.commit((queries) => {
    const details = { chain: null, seq, hash: "0".repeat(64) };
    appendAudits(queries, [{ ...entry(1), at, org_id: null, event: EVENT, details }]);
  });
  await days.close();
  await days.add(4, 30);
  await days.close();
  rmSync(join(days.directory, "2026-01-05.db"));
  await days.reopen();
  expect((await lostAnchors(days.queries, store)).told).toMatchObject([{ org_id: null, seq }]);
});
