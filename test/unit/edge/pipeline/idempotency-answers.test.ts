/** Stored responses for retries: large ones are compressed and bounded, and the response to a retry after an eviction. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { type IdempotentCall, makeIdempotency } from "../../../../daemon/edge/pipeline/idempotency-answers.ts";

const KIB = 1024;
let connection: Connection;
let database: Database;
beforeEach(() => {
  connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
});
afterEach(() => database.close());

const callOf = (key: string, key_id = "kid_1", org_id = "org_1"): IdempotentCall => ({
  org_id,
  key_id,
  method: "POST",
  path: "/v1/rooms/r/sandboxes/a/exec",
  idempotency_key: key,
  body_sha256: "same",
});
/** Cannot be compressed. */
const noise = (bytes: number) => Buffer.from(crypto.getRandomValues(new Uint8Array(bytes))).toString("base64");

async function answer(idempotency: ReturnType<typeof makeIdempotency>, call: IdempotentCall, output: string) {
  const claim = await idempotency.begin(call);
  if (claim.reply) throw new Error("it was answered before");
  const packed = await idempotency.pack({ status: 200, body: { stdout: output }, location: null });
  await database.commit((queries) => idempotency.keep(queries, call, packed));
  claim.letGo();
}

const replayOf = async (idempotency: ReturnType<typeof makeIdempotency>, call: IdempotentCall) =>
  ((await idempotency.begin(call)).reply?.body as { stdout: string } | undefined)?.stdout;

test("a response of any size is restored unchanged, and a large one is compressed", async () => {
  const idempotency = makeIdempotency(database);
  for (const [key, output] of [
    ["none", ""],
    ["small", "x".repeat(KIB)],
    ["large", "a line of output that comes again\n".repeat(300_000)],
  ] as const) {
    await answer(idempotency, callOf(key), output);
    expect((await replayOf(idempotency, callOf(key))) === output).toBe(true);
  }
  const [{ taken } = { taken: 0 }] = database.queries.all<{ taken: number }>(
    sql`SELECT sum(length(reply_zstd)) + sum(ifnull(length(reply), 0)) AS taken FROM idempotency`,
  );
  expect(taken).toBeLessThan(100 * KIB);
});

test("of a key's large responses the newest stay; evicted calls are not repeated, and other keys lose none", async () => {
  const idempotency = makeIdempotency(database, 300 * KIB);
  const outputs = new Map<string, string>();
  await answer(idempotency, callOf("bystander", "kid_2"), noise(150 * KIB));
  await answer(idempotency, callOf("small"), "small");
  for (const key of ["first", "second", "third"]) {
    outputs.set(key, noise(120 * KIB));
    await answer(idempotency, callOf(key), outputs.get(key) ?? "");
    // The next is younger by a clock of milliseconds.
    const now = Date.now();
    while (Date.now() === now);
  }
  const failure = await idempotency.begin(callOf("first")).catch((error: unknown) => error);
  expect(failure).toMatchObject({ code: "history_gone", options: { details: { status: 200 } } });
  // Not a second time either.
  await expect(idempotency.begin(callOf("first"))).rejects.toMatchObject({ code: "history_gone" });
  await expect(idempotency.begin({ ...callOf("first"), body_sha256: "other" })).rejects.toMatchObject({
    code: "idempotency_key_reused",
  });
  for (const key of ["second", "third"]) expect(await replayOf(idempotency, callOf(key))).toBe(outputs.get(key));
  expect(await replayOf(idempotency, callOf("small"))).toBe("small");
  expect(await replayOf(idempotency, callOf("bystander", "kid_2"))).toHaveLength(200 * KIB);
});

test("of an organization's responses the newest stay, for all keys, and other organizations lose none", async () => {
  const idempotency = makeIdempotency(database, 300 * KIB, 50 * KIB);
  const output = "x".repeat(KIB);
  await answer(idempotency, callOf("bystander", "kid_9", "org_2"), output);
  const keys = Array.from({ length: 200 }, (_, n) => callOf(`call ${String(n).padStart(3, "0")}`, `kid_${n % 2}`));
  for (const key of keys) await answer(idempotency, key, output);
  const [{ taken } = { taken: 0 }] = database.queries.all<{ taken: number }>(
    sql`SELECT sum(length(reply)) AS taken FROM idempotency WHERE org_id = 'org_1'`,
  );
  expect(taken).toBeLessThanOrEqual(50 * KIB);
  expect(taken).toBeGreaterThan(45 * KIB);
  for (const newest of keys.slice(-40)) expect(await replayOf(idempotency, newest)).toBe(output);
  for (const oldest of keys.slice(0, 40)) {
    await expect(idempotency.begin(oldest)).rejects.toMatchObject({
      code: "history_gone",
      options: { details: { status: 200 } },
    });
  }
  expect(await replayOf(idempotency, callOf("bystander", "kid_9", "org_2"))).toBe(output);
});

const sumOf = (column: string) =>
  database.queries.all<{ n: number }>(sql.raw(`SELECT ifnull(sum(${column}), 0) AS n FROM idempotency`))[0]?.n ?? -1;
const nothing = () => database.commit(() => {});

test("responses evicted for a large one are deleted in pieces, with other commits in between", async () => {
  const [most, small] = [300 * KIB, 60];
  const idempotency = makeIdempotency(database, most, most);
  const count = Math.floor(most / small);
  database.queries.run(sql`
    WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < ${count})
    INSERT INTO idempotency (key_id, method, path, idempotency_key, body_sha256, status, reply, created_at, org_id, kept_bytes)
    SELECT 'kid_' || i % 3, 'POST', '/', i, 's', 200, hex(zeroblob(${small / 2})), ${new Date().toISOString()}, 'org_1', ${small} FROM n`);
  const smallOnes = () => sumOf(`kept_bytes = ${small}`);
  const left = [count];
  database.onCommit(() => left.push(smallOnes()));
  await answer(idempotency, callOf("large"), noise(150 * KIB));
  for (let n = 0; sumOf("kept_bytes") > most && n < 20; n++) await nothing();
  const portions = left.slice(1).map((after, commit) => (left[commit] ?? 0) - after);
  expect(Math.max(...portions)).toBeLessThanOrEqual(500);
  expect(smallOnes()).toBeLessThan(0.55 * count);
  expect(sumOf("kept_bytes")).toBeGreaterThan(0.95 * most);
  expect((await replayOf(idempotency, callOf("large")))?.length).toBe(200 * KIB);
});

test("the size of responses is the sum of changes, also after a rollback and for expired ones", async () => {
  const [ofKey, ofOrg] = [300 * KIB, 400 * KIB];
  const idempotency = makeIdempotency(database, ofKey, ofOrg);
  const packed = {
    small: await idempotency.pack({ status: 200, body: { stdout: "x".repeat(4 * KIB) }, location: null }),
    large: await idempotency.pack({ status: 200, body: { stdout: noise(60 * KIB) }, location: null }),
  };
  for (let at = 0; at < 250; at++) {
    const call = callOf(`call ${at}`, `kid_${at % 2}`);
    await idempotency.begin(call);
    const kept = database.commit((queries) => {
      idempotency.keep(queries, call, at % 5 === 4 ? packed.large : packed.small);
      // A verb stores its response with its work; a later result may replace it.
      if (at % 7 === 0) idempotency.keep(queries, call, packed.small);
      if (at % 3 === 0) throw new Error("not kept after all");
    });
    await kept.catch(() => {});
    if (at % 50 === 49) {
      const old = sql`SELECT created_at FROM idempotency ORDER BY created_at DESC LIMIT 1 OFFSET 60`;
      database.queries.run(
        sql`UPDATE idempotency SET created_at = '2020-01-01T00:00:00.000Z' WHERE created_at < (${old})`,
      );
    }
    expect(sumOf("kept_bytes")).toBeLessThanOrEqual(ofOrg);
    for (const key of [0, 1]) expect(sumOf(`iif(key_id = 'kid_${key}', reply_bytes, 0)`)).toBeLessThanOrEqual(ofKey);
  }
  // Nothing was counted twice either.
  for (let at = 0; at < 110; at++) await answer(idempotency, callOf(`again ${at}`), "x".repeat(4 * KIB));
  expect(sumOf("kept_bytes")).toBeGreaterThan(ofOrg - 10 * KIB);
  for (let at = 0; at < 6; at++) await answer(idempotency, callOf(`large ${at}`, "kid_3"), noise(60 * KIB));
  expect(sumOf("iif(key_id = 'kid_3', reply_bytes, 0)")).toBeGreaterThan(ofKey - 70 * KIB);
});

test("a repeated call without a response is the same work, and another call is other work", async () => {
  const idempotency = makeIdempotency(database);
  const begin = async (call: IdempotentCall, by = idempotency) => {
    const claim = await by.begin(call);
    if (claim.reply) throw new Error("it was answered before");
    return claim;
  };
  const workOf = async (call: IdempotentCall) => (await begin(call)).work_ulid;
  const { work_ulid: first, letGo } = await begin(callOf("cut"));
  expect(first).toMatch(/^[0-7][0-9A-HJKMNP-TV-Z]{25}$/);
  await expect(idempotency.begin(callOf("cut"))).rejects.toMatchObject({ code: "idempotency_in_progress" });
  await expect(idempotency.begin({ ...callOf("cut"), body_sha256: "other" })).rejects.toMatchObject({
    code: "idempotency_key_reused",
  });
  // A daemon after this one's crash.
  expect((await begin(callOf("cut"), makeIdempotency(database))).work_ulid).toBe(first);
  // As after a 5xx, or if nothing could be written.
  letGo();
  expect((await begin(callOf("cut"))).work_ulid).toBe(first);
  letGo();

  const now = Date.now();
  while (Date.now() === now);
  const others = [{ ...callOf("cut"), body_sha256: "other" }, callOf("cut", "kid_2"), callOf("another")];
  const works = await Promise.all(others.map(workOf));
  expect(new Set([first, ...works]).size).toBe(4);
});

test("after a day a key names new work", async () => {
  const idempotency = makeIdempotency(database);
  const first = await idempotency.begin(callOf("daily"));
  if (first.reply === null) first.letGo();
  const now = Date.now();
  while (Date.now() === now);
  database.queries.run(sql`UPDATE idempotency SET created_at = '2020-01-01T00:00:00.000Z'`);
  const later = await idempotency.begin(callOf("daily"));
  expect(later).toMatchObject({ reply: null, work_ulid: expect.any(String) });
  expect(later).not.toEqual(first);
});

test("calls of over a day ago are ignored for a retry, and deleted in pieces for all others", async () => {
  const idempotency = makeIdempotency(database);
  for (let at = 0; at < 40; at++) await answer(idempotency, callOf(`call ${at}`), "old");
  database.queries.run(sql`UPDATE idempotency SET created_at = '2020-01-01T00:00:00.000Z'`);
  await idempotency.begin(callOf("another"));
  expect(sumOf("1")).toBe(31);
  await answer(idempotency, callOf("call 39"), "new");
  expect(await replayOf(idempotency, callOf("call 39"))).toBe("new");
  for (let at = 0; at < 4; at++) await idempotency.begin(callOf(`more ${at}`));
  expect(sumOf("status = 200")).toBe(1);
});
