/** A room with as many idempotent calls as an organization may have, and the longest turn of the event loop while it branches and moves. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { inPieces, loopTime, Pieces } from "../../../daemon/core/loop/index.ts";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import { migrate } from "../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../daemon/db/transact.ts";
import { makeIdempotency } from "../../../daemon/edge/pipeline/idempotency-answers.ts";
import { MAX_IDEMPOTENT_CALLS } from "../../../shared/api/headers.ts";
import type { OrgId } from "../../../shared/ids.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";
import { shortOrLong } from "../../harness/guests.ts";

const CALLS = shortOrLong("idempotent calls of a room", 50_000, MAX_IDEMPOTENT_CALLS);
const MAX_MS = 10;
/** One call reads, adds and removes a few rows. */
const MAX_CALL_MS = 3;
const DAEMONS = 3;
const ORG = "org_1" as OrgId;
const ROOM = { org_id: ORG, room_id: "first", room_uid: "rom_1" };

let database: Database;
let branch: ReturnType<typeof makeIdempotency>["branch"];
let connection: Connection;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  ({ branch } = makeIdempotency(database));
  add(0, CALLS);
});
afterEach(() => database.close());

const add = (from: number, to: number) =>
  connection.execute(`WITH RECURSIVE n (i) AS (SELECT ${from} UNION ALL SELECT i + 1 FROM n WHERE i < ${to - 1})
    INSERT INTO idempotency (key_id, method, path, idempotency_key, body_sha256, status, reply, created_at, org_id, kept_bytes)
      SELECT 'sbx_1', 'POST', '/v1/rooms/first/messages', i, 'same', 201, '{"text":"' || printf('%0200d', i) || '"}',
        strftime('%Y-%m-%dT%H:%M:%fZ', 1800000000 + i / 10.0, 'unixepoch'), '${ORG}', 211 FROM n`);

const kept = (key: string) =>
  database.queries.all<{ calls: number; replies: number }>(
    sql`SELECT count(*) AS calls, count(reply) AS replies FROM idempotency WHERE key_id = ${key}`,
  )[0];

async function measured<T>(name: string, work: () => Promise<T>): Promise<T> {
  let result: T | undefined;
  const longest = await longestTurn(async () => {
    result = await work();
  });
  console.log(`${name}: longest turn ${longest.toFixed(1)} ms`);
  expect(longest).toBeLessThan(boundOf(MAX_MS));
  return result as T;
}
const pieces = () => new Pieces(loopTime, "host", "room.rows");

test("those of a guest are taken and put in short turns, with the newest replies", async () => {
  const state = await measured("taken", () => inPieces(branch.take(database.queries, ["sbx_1"]), pieces()));
  const guests = { org_id: ORG, pathOf: (path: string) => path, pausedMs: 0 };
  await measured("put", () => branch.replace(state, { ...guests, sandboxIds: new Map([["sbx_1", "sbx_2"]]) }));
  const replies = Math.min(CALLS, Math.floor((8 * 1024 ** 2) / 211));
  expect(kept("sbx_2")).toEqual({ calls: CALLS, replies });
  await measured("replaced", () => branch.replace(state, { ...guests, sandboxIds: new Map([["sbx_1", "sbx_1"]]) }));
  expect(kept("sbx_1")).toEqual({ calls: CALLS, replies });
});

test("those of a room are moved in short turns", async () => {
  const calls = await measured("taken", () => inPieces(branch.takeRoom(database.queries, ROOM), pieces()));
  await database.commit((queries) => queries.run(sql`DELETE FROM idempotency`));
  await measured("put", () => branch.putRoom(calls, ROOM, new AbortController().signal));
  await measured("put again", () => branch.putRoom(calls, ROOM, new AbortController().signal));
  expect(kept("sbx_1")).toEqual({ calls: CALLS, replies: CALLS });
});

test("an organization with as many calls as it may have makes its first call of a daemon in a short turn", async () => {
  if (CALLS < MAX_IDEMPOTENT_CALLS) add(CALLS, MAX_IDEMPOTENT_CALLS - DAEMONS);
  const turns: number[] = [];
  for (let daemon = 0; daemon < DAEMONS; daemon++) {
    const { begin, keep, pack } = makeIdempotency(database);
    const call = {
      key_id: "kid_1",
      method: "POST",
      path: "/",
      idempotency_key: `${daemon}`,
      body_sha256: "",
      org_id: ORG,
    };
    const longest = await longestTurn(async () => {
      await begin(call);
      const reply = await pack({ status: 200, body: {}, location: null });
      await database.commit((queries) => keep(queries, call, reply));
    });
    turns.push(longest);
  }
  console.log(`longest turns: ${turns.map((ms) => ms.toFixed(1)).join(", ")} ms`);
  expect(kept("kid_1")).toEqual({ calls: DAEMONS, replies: DAEMONS });
  expect(Math.min(...turns)).toBeLessThan(boundOf(MAX_CALL_MS));
});
