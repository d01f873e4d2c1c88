/** Calls of guests that branch: none is carried out twice, none that was taken back counts as done, and sums stay right. */
import { sql } from "drizzle-orm";
import { afterEach, beforeEach, expect, test } from "vitest";
import { wholly } from "../../../../daemon/core/loop/index.ts";
import { valuesIn } from "../../../../daemon/db/branch.ts";
import { openConnection } from "../../../../daemon/db/client.ts";
import { migrate } from "../../../../daemon/db/migrate.ts";
import { type Database, makeDatabase } from "../../../../daemon/db/transact.ts";
import { type IdempotentCall, makeIdempotency } from "../../../../daemon/edge/pipeline/idempotency-answers.ts";
import type { CallsState } from "../../../../daemon/edge/pipeline/idempotency-branch.ts";
import type { OrgId } from "../../../../shared/ids.ts";

const KIB = 1024;
const ORG = "org_1" as OrgId;
let database: Database;
let idempotency: ReturnType<typeof makeIdempotency>;
beforeEach(() => {
  const connection = openConnection(":memory:");
  migrate(connection);
  database = makeDatabase(connection);
  idempotency = makeIdempotency(database);
});
afterEach(() => database.close());

const callOf = (idempotency_key: string, key_id = "sbx_1", path = "/v1/rooms/first/messages"): IdempotentCall => ({
  ...{ org_id: ORG, key_id, method: "POST", path, idempotency_key, body_sha256: "same" },
});

async function begun(call: IdempotentCall) {
  const claim = await idempotency.begin(call);
  if (claim.reply) throw new Error("it was answered before");
  claim.letGo();
  return claim;
}

async function answer(call: IdempotentCall, text: string): Promise<void> {
  await begun(call);
  const packed = await idempotency.pack({ status: 202, body: { text }, location: null });
  await database.commit((queries) => idempotency.keep(queries, call, packed));
}

/** Result of the same call now: the stored text, or null if it is carried out. */
async function again(call: IdempotentCall): Promise<string | null> {
  const claim = await idempotency.begin(call);
  if (!claim.reply) claim.letGo();
  return claim.reply ? (claim.reply.body as { text: string }).text : null;
}

async function take(...sandboxIds: string[]): Promise<CallsState> {
  const state = wholly(idempotency.branch.take(database.queries, sandboxIds));
  return JSON.parse(JSON.stringify(state)) as CallsState;
}

const branch = (how: "put" | "replace", state: CallsState, sandboxIds: Record<string, string>, pausedMs = 0) => {
  const pathOf = (path: string) => (how === "put" ? path.replace("/first/", "/second/") : path);
  const guests = { org_id: ORG, sandboxIds: new Map(Object.entries(sandboxIds)), pathOf, pausedMs };
  return idempotency.branch.replace(state, guests);
};

const inSecond = (key: string) => callOf(key, "sbx_2", "/v1/rooms/second/messages");

test("in another room, finished calls keep their response, and unfinished ones resume as the same work", async () => {
  await answer(callOf("answered"), "yes");
  const { work_ulid } = await begun(callOf("cut"));
  await database.commit((queries) => idempotency.note(queries, callOf("cut"), { generation: 7 }));
  const state = await take("sbx_1");
  await answer(callOf("later"), "no");
  await branch("put", state, { sbx_1: "sbx_2" }, 3600_000);
  expect(await again(inSecond("answered"))).toBe("yes");
  expect(await again(inSecond("later"))).toBeNull();
  for (let time = 0; time < 2; time++) {
    expect(await begun(inSecond("cut"))).toMatchObject({ work_ulid, begun: { generation: 7 } });
  }
  // And from there in a third.
  await branch("put", await take("sbx_2"), { sbx_2: "sbx_3" });
  const third = { ...inSecond("cut"), key_id: "sbx_3" };
  expect(await begun(third)).toMatchObject({ work_ulid, begun: { generation: 7 } });
  // Put right it is other work.
  expect((await begun({ ...third, body_sha256: "other" })).work_ulid).not.toBe(work_ulid);
  expect((await begun(callOf("cut"))).work_ulid).toBe(work_ulid);
});

test("a room or a message may be named sandboxes", async () => {
  const paths = ["/v1/rooms/sandboxes/messages", "/v1/rooms/first/messages/sandboxes/ack"];
  for (const path of paths) await answer(callOf("k", "sbx_1", path), "yes");
  const { calls } = await take("sbx_1");
  expect(calls.sbx_1 && valuesIn(calls.sbx_1, "path").sort()).toEqual(paths.toSorted());
});

test("after a rollback, a guest's later calls count as not made; those of others stay", async () => {
  await answer(callOf("before"), "yes");
  await begun(callOf("cut"));
  const state = await take("sbx_1");
  await answer(callOf("cut"), "since then");
  await answer(callOf("later"), "no");
  await answer(callOf("later", "kid_1"), "of a key");
  await branch("replace", state, { sbx_1: "sbx_1" });
  const calls = [callOf("before"), callOf("cut"), callOf("later"), callOf("later", "kid_1")];
  expect(await Promise.all(calls.map(again))).toEqual(["yes", null, null, "of a key"]);
});

test("a day counts from the branch's own clock", async () => {
  await answer(callOf("old"), "yes");
  const aged = new Date(Date.now() - 20 * 3600_000).toISOString();
  await database.commit((queries) => queries.run(sql`UPDATE idempotency SET created_at = ${aged}`));
  await branch("put", await take("sbx_1"), { sbx_1: "sbx_2" }, 10 * 3600_000);
  const [row] = database.queries.all<{ created_at: string }>(
    sql`SELECT created_at FROM idempotency WHERE key_id = 'sbx_2'`,
  );
  expect(Date.parse(String(row?.created_at)) - Date.parse(aged)).toBe(10 * 3600_000);
});

test("calls about the sandbox itself run again; calls with a long response are not repeated", async () => {
  const ports = "/v1/rooms/first/sandboxes/a/ports";
  await answer(callOf("port", "sbx_1", ports), "a token");
  await answer(callOf("large"), "x".repeat(100 * KIB));
  for (let at = 0; at < 250; at++) await answer(callOf(`n${at}`), "x".repeat(40 * KIB));
  const state = await take("sbx_1");
  expect(JSON.stringify(state).length).toBeLessThan(9 * KIB ** 2);
  await branch("put", state, { sbx_1: "sbx_2" });
  expect(await again(callOf("port", "sbx_2", ports.replace("first", "second")))).toBeNull();
  for (const key of ["large", "n0"]) {
    await expect(idempotency.begin(inSecond(key))).rejects.toMatchObject({ code: "history_gone" });
  }
  expect(await again(inSecond("n249"))).toHaveLength(40 * KIB);
});

test("the size of responses is right for every caller, also in the next daemon", async () => {
  const most = 100 * KIB;
  idempotency = makeIdempotency(database, most, most);
  await answer(callOf("zero", "sbx_9"), "x".repeat(KIB));
  await answer(callOf("one"), "x".repeat(30 * KIB));
  const state = await take("sbx_1");
  await answer(callOf("two"), "x".repeat(30 * KIB));
  await branch("put", state, { sbx_1: "sbx_2" });
  await branch("replace", state, { sbx_1: "sbx_1" });
  // 61 of 100 KiB: one more goes, and then the oldest is in the way.
  await answer(callOf("three", "sbx_9"), "x".repeat(30 * KIB));
  expect(await again(callOf("one"))).toHaveLength(30 * KIB);
  await answer(callOf("four", "sbx_9"), "x".repeat(30 * KIB));
  const kept = database.queries.all<{ bytes: number }>(sql`SELECT sum(kept_bytes) AS bytes FROM idempotency`);
  expect(kept[0]?.bytes).toBeLessThan(most);
  idempotency = makeIdempotency(database, most, most);
  expect(await again(callOf("four", "sbx_9"))).toHaveLength(30 * KIB);
});

test("the calls of a checkpoint that an older roomd has taken, with an object for each, are known too", async () => {
  await answer(callOf("answered"), "yes");
  await begun(callOf("cut"));
  await database.commit((queries) => idempotency.note(queries, callOf("cut"), { generation: 7 }));
  const { columns, rows } = (await take("sbx_1")).calls.sbx_1 ?? { columns: [], rows: [] };
  const calls = rows.map((row) => Object.fromEntries(columns.map((column, at) => [column, row[at]])));
  const parsed = calls.map(({ begun, ...call }) => ({ ...call, begun: begun && JSON.parse(String(begun)) }));
  await branch("put", { calls: { sbx_1: parsed } } as unknown as CallsState, { sbx_1: "sbx_2" });
  expect(await again(inSecond("answered"))).toBe("yes");
  expect(await begun(inSecond("cut"))).toMatchObject({ begun: { generation: 7 } });
});

test("guests that were not created have no calls", async () => {
  await answer(callOf("answered"), "yes");
  await branch("put", await take("sbx_1"), { sbx_1: "sbx_2" });
  await idempotency.branch.remove(["sbx_2"]);
  expect(await again(inSecond("answered"))).toBeNull();
  expect(await again(callOf("answered"))).toBe("yes");
});

test("a room that arrives has the calls that it brings, and none of an earlier stay", async () => {
  const room = { org_id: ORG, room_id: "first", room_uid: "rom_1" };
  const elsewhere = callOf("answered", "sbx_1", "/v1/rooms/other/messages");
  await answer(callOf("undone"), "former");
  await answer(elsewhere, "other");
  await answer(callOf("brought"), "yes");
  const calls = wholly(idempotency.branch.takeRoom(database.queries, room));
  const isBrought = (row: unknown[]) => row.includes("brought");
  await idempotency.branch.putRoom(
    { ...calls, rows: calls.rows.filter(isBrought) },
    room,
    new AbortController().signal,
  );
  expect(await again(callOf("undone"))).toBeNull();
  expect([await again(callOf("brought")), await again(elsewhere)]).toEqual(["yes", "other"]);
});

test("calls that another host sends with a room replace and evict none of another organization", async () => {
  idempotency = makeIdempotency(database, 100 * KIB, 100 * KIB);
  const victim = (key: string) => ({ ...callOf(key, "kid_2", "/v1/rooms"), org_id: "org_2" });
  await answer(victim("small"), "yes");
  await answer(victim("large"), "x".repeat(70 * KIB));
  const sent = [callOf("sent", "org_2"), callOf("sent", "kid_2"), { ...victim("small"), org_id: ORG }].map((call) => ({
    ...{ ...call, status: 202, reply: JSON.stringify({ status: 202, body: { text: "sent" }, location: null }) },
    ...{ created_at: new Date().toISOString(), reply_bytes: 2 ** 52, kept_bytes: 2 ** 52 },
  }));
  await idempotency.branch.putRoom(
    { columns: Object.keys(sent[0] ?? {}), rows: sent.map((call) => Object.values(call)) },
    { org_id: ORG, room_id: "first", room_uid: "rom_1" },
    new AbortController().signal,
  );
  await answer(victim("next"), "x".repeat(70 * KIB));
  expect(await again(callOf("sent", "org_2"))).toBe("sent");
  expect(await again(victim("small"))).toBe("yes");
  expect([await again(victim("large")), await again(victim("next"))]).toEqual(Array(2).fill("x".repeat(70 * KIB)));
});
