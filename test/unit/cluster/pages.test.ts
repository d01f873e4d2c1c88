/** A directory of many rows: a host joins, comes back after days and forgets in pieces, none of which takes long. */
import { sql } from "drizzle-orm";
import { afterAll, beforeAll, expect, test } from "vitest";
import { pointOf } from "../../../daemon/cluster/replica.ts";
import { forgetOld } from "../../../daemon/cluster/schema.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";
import { LONG, shortOrLong } from "../../harness/guests.ts";
import { fillDirectory } from "../../harness/hosts/large-directory.ts";
import { Postgres } from "../../harness/hosts/postgres.ts";
import { newDirectory, newPeer, type Peer, within } from "./peers.ts";

const KEYS = shortOrLong("rows of a directory", 100_000, 2_000_000);
const CHANGES = 1_000;
/** Rows of the largest change. */
const MANY = 5_000;
const MAX_TURN_MS = 20;
/** Catching up writes fewer rows in a turn than that takes. */
const MAX_CATCH_UP_MS = 14;

let server: Postgres;
let host: Peer;

/** Changes of three days: half of the keys ended, a third is gone, and one change had many rows. */
const THREE_DAYS = `
  UPDATE roomd.rows SET seq = ${CHANGES} + seq, "row" = CASE WHEN right(key, 3) < '3' THEN NULL
      ELSE "row" || '{"revoked_at": "2026-01-02T00:00:00.000Z"}' END
    WHERE tbl = 'api_keys' AND right(key, 3) < '5';
  UPDATE roomd.rows SET seq = ${CHANGES} + 7 WHERE key IN
    (SELECT key FROM roomd.rows WHERE tbl = 'api_keys' AND seq <= ${CHANGES} ORDER BY key LIMIT ${MANY});
  INSERT INTO roomd.changes SELECT ${CHANGES} + i, 'change ' || ${CHANGES} + i, 'other', now() FROM generate_series(1, ${CHANGES}) i;
  UPDATE roomd.cluster SET seq = ${2 * CHANGES}; ANALYZE roomd.rows`;

beforeAll(async () => {
  server = await Postgres.start({ settings: { fsync: "off" } });
  await newDirectory(server);
  await server.sql(fillDirectory(KEYS, CHANGES));
  host = await newPeer(server, "a");
}, 600_000);
afterAll(async () => {
  await host?.close();
  await server?.[Symbol.asyncDispose]();
}, 60_000);

const count = (condition: string) =>
  host.queries.all<{ n: number }>(sql.raw(`SELECT count(*) AS n FROM api_keys WHERE ${condition}`))[0]?.n;
const inDirectory = async (condition: string) =>
  Number(
    await server.sql(`SELECT count(*) FROM roomd.rows WHERE tbl = 'api_keys' AND "row" IS NOT NULL AND ${condition}`),
  );

async function measured(label: string, work: () => Promise<unknown>, mostMs = MAX_TURN_MS): Promise<void> {
  const startedAt = performance.now();
  const longest = await longestTurn(work);
  console.log(`${label}: ${Math.round(performance.now() - startedAt)} ms, longest turn ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(mostMs));
}

test("a host joins a directory of many rows", async () => {
  await measured(`${KEYS} rows and as many deleted ones`, () => host.rounds.pull());
  expect([count("1"), host.unfit()]).toEqual([KEYS, 0]);
  expect(pointOf(host.queries).seq).toBe(CHANGES);
}, 600_000);

test("a host that returns after three days catches up in pages, and no change waits for all of them", async () => {
  await server.sql(THREE_DAYS);
  // Another process on the same copy brings some pages until then.
  const impatient = host.impatient(LONG ? 5_000 : 100);
  await expect(impatient.change(() => {}, true)).rejects.toMatchObject({ code: "cluster_unavailable" });
  const { seq } = pointOf(host.queries);
  expect(seq).toBeGreaterThan(CHANGES);
  expect(seq).toBeLessThan(2 * CHANGES);
  const catchUp = async () => {
    while (pointOf(host.queries).seq < 2 * CHANGES) await host.rounds.pull();
  };
  await measured(`three days from change ${seq} on`, catchUp, MAX_CATCH_UP_MS);
  await impatient.settle();
  expect(pointOf(host.queries).seq).toBe(2 * CHANGES);
  expect(count("1")).toBe(await inDirectory("true"));
  expect(count("revoked_at IS NOT NULL")).toBe(await inDirectory(`"row" ->> 'revoked_at' IS NOT NULL`));
  expect(host.unfit()).toBe(0);
}, 600_000);

test("a copy is compared with the whole directory if the directory no longer has its last change", async () => {
  await server.sql(`DELETE FROM roomd.rows WHERE tbl = 'api_keys' AND right(key, 3) = '9"]';
    UPDATE roomd.changes SET change_id = change_id || ' again'`);
  await measured("all rows compared", () => host.rounds.pull());
  expect(count("1")).toBe(await inDirectory("true"));
}, 600_000);

test("old changes and deleted rows are purged in pieces", async () => {
  await server.sql("UPDATE roomd.changes SET at = now() - interval '8 days' WHERE seq < 1500");
  const kept = await server.sql(`SELECT count(*) FROM roomd.rows WHERE "row" IS NOT NULL OR seq >= 1500`);
  const pieces: number[] = [];
  await measured("old rows forgotten", async () => {
    for (let forgotten = 1; forgotten > 0; pieces.push(forgotten)) {
      await within(server, async (run) => {
        forgotten = await forgetOld(run);
      });
    }
  });
  expect(Math.max(...pieces)).toBeLessThanOrEqual(2_000);
  expect(await server.sql("SELECT count(*) FROM roomd.rows")).toBe(kept);
  expect(await server.sql("SELECT min(seq) FROM roomd.changes")).toBe("1500");
}, 600_000);
