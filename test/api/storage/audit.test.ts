/** The audit: one record for every operation, in a chain that shows any change, with nothing in it that could be used. */
import { spawnSync } from "node:child_process";
import { copyFileSync, mkdirSync, readdirSync, readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { type Connection, openConnection } from "../../../daemon/db/client.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import type { Operation } from "../../../shared/api/contract.ts";
import { isReading } from "../../../shared/audit-reads.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, makeKey, run, until } from "../calls.ts";
import { OPERATIONS, requestOf } from "../requests.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  await daemon.room("r");
});
afterAll(() => daemon.stop());

const org = async (query = ""): Promise<{ items: AuditRecord[]; next_cursor: string | null }> =>
  await daemon.ok("GET", `/v1/orgs/self/audit?${query}`);

/** The records of these requests, once all are there. */
function recordsOf(ids: string[], count = ids.length): Promise<AuditRecord[]> {
  return until(
    async () => (await org("limit=1000")).items.filter(({ request_id }) => ids.includes(request_id ?? "")),
    (records) => records.length >= count,
  );
}

/** The daemon's own database, as another process of the host sees it. */
async function inDatabase<T>(work: (connection: Connection) => T, file = join(daemon.dataDir, "roomd.db")): Promise<T> {
  const connection = openConnection(file);
  try {
    return work(connection);
  } finally {
    connection.close();
  }
}

const databaseFiles = () =>
  readdirSync(daemon.dataDir)
    .filter((name) => name.startsWith("roomd.db"))
    .map((name) => join(daemon.dataDir, name));

/** Read by another process: a process that closes a file loses its POSIX locks on it, also those of this process's own connections. */
function dumpOf(files: string[]): string {
  const { status, stdout } = spawnSync("cat", files, { encoding: "latin1", maxBuffer: 256 * 1024 ** 2 });
  expect(status).toBe(0);
  return stdout;
}

describe("a record", () => {
  const audited = OPERATIONS.filter(({ audit }) => audit !== null);
  const call = async (operation: Operation, requestId: string, key: string) => {
    const { method, path, body, headers } = requestOf(operation, { room_id: "r", org_id: "self" });
    return await bare(daemon, method, path, { ...headers, ...bearer(key), "x-request-id": requestId }, body);
  };

  test("is left by every operation: exactly one, with its outcome", async () => {
    const { key_id, org_id } = await daemon.ok("GET", "/v1/me");
    const { room_uid } = await daemon.ok("GET", "/v1/rooms/r");
    const answers = new Map<string, Json>();
    // The room's end comes last.
    const inOrder = audited.toSorted((a, b) => Number(a.name === "room_destroy") - Number(b.name === "room_destroy"));
    for (const operation of inOrder)
      answers.set(operation.name, await call(operation, `all-${operation.name}`, daemon.apiKey));
    await daemon.room("r");
    const ids = audited.map(({ name }) => `all-${name}`);
    const all = await recordsOf(ids, ids.length + 1);
    // A forked room has one more record of its own, with the name of its source.
    const isOfFork = ({ event, request_id }: AuditRecord) => event === "room.created" && request_id === "all-room_fork";
    const { room_id: forked, checkpoint_id } = answers.get("room_fork").body;
    expect(all.filter(isOfFork)).toMatchObject([
      { room_id: forked, details: { of_room: "r", checkpoint_id }, status: null },
    ]);
    const records = all.filter((record) => !isOfFork(record));
    expect(records).toHaveLength(audited.length);
    for (const operation of audited) {
      const { status, body } = answers.get(operation.name);
      const record = records.find(({ request_id }) => request_id === `all-${operation.name}`);
      const inRoom = "room_id" in operation.params.properties;
      expect(record, operation.name).toMatchObject({
        event: operation.audit,
        // This key has no access to the operator's operations.
        outcome: status < 400 ? "success" : status === 403 ? "denied" : "error",
        status,
        error_code: status < 400 ? null : body.code,
        org_id,
        ...(inRoom ? { room_id: "r" } : {}),
        // The name of a room that it would have made.
        ...(inRoom && operation.name !== "room_from_backup" ? { room_uid } : {}),
        actor: { type: "key", id: key_id, name: "first" },
        source: "rest",
        ip: "127.0.0.1",
        at: expect.stringMatching(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
        duration_ms: expect.any(Number),
      });
    }
  });

  test("is left by every operation that is refused for a missing scope", async () => {
    const { key_id, key } = await makeKey(daemon, { scopes: ["usage:read"] });
    const scoped = audited.filter(({ access }) => access !== "key" && access !== "usage:read");
    for (const operation of scoped) await call(operation, `scope-${operation.name}`, key);
    const records = await recordsOf(scoped.map(({ name }) => `scope-${name}`));
    expect(records).toHaveLength(scoped.length);
    for (const record of records) {
      expect(record).toMatchObject({
        outcome: "denied",
        status: 403,
        error_code: "insufficient_scope",
        actor: { id: key_id },
      });
    }
  });

  test("of a failed authentication is stored with the host's records, not with any organization's", async () => {
    const before = (await org("limit=1")).items[0]?.seq;
    const { key_id, key } = await makeKey(daemon);
    await run(daemon, "key", "revoke", key_id);
    for (const [id, bad] of [
      ["auth-none", null],
      ["auth-unknown", `key-${"b".repeat(43)}`],
      ["auth-revoked", key],
    ] as const) {
      await bare(daemon, "GET", "/v1/rooms", { "x-request-id": id, ...(bad === null ? {} : bearer(bad)) });
    }
    await bare(daemon, "PATCH", "/v1/nowhere", { "x-request-id": "auth-nowhere", ...bearer("key-short") });
    const failed = await until(
      () =>
        inDatabase(({ queries }) =>
          queries.all<Json>(`SELECT * FROM audit WHERE org_key = '' AND request_id LIKE 'auth-%' ORDER BY request_id`),
        ),
      (rows) => rows.length === 3,
    );
    expect(failed.map(({ request_id }) => request_id)).toEqual(["auth-nowhere", "auth-revoked", "auth-unknown"]);
    const listed = await run(daemon, "audit", "--host", "--event", "auth.");
    expect(listed.items.map(({ request_id }: Json) => request_id)).toEqual(
      expect.arrayContaining(["auth-nowhere", "auth-revoked", "auth-unknown"]),
    );
    const wrong = await daemon.cli(["audit", "--host", "--since", "yesterday"]);
    expect(wrong).toMatchObject({
      status: 2,
      stdout: "",
      stderr: expect.stringContaining("--since"),
    });
    for (const row of failed) {
      expect(row).toMatchObject({
        event: "auth.failed",
        outcome: "denied",
        status: 401,
        error_code: "invalid_api_key",
        ip: "127.0.0.1",
      });
    }
    const since = (await org("order=desc&limit=20")).items.filter(({ seq }) => seq > (before ?? 0));
    expect(since.map(({ event }) => event)).not.toContain("auth.failed");
    expect(since.map(({ event }) => event)).toEqual(expect.arrayContaining(["key.created", "key.revoked"]));
  });

  test("of a flood of failed authentications: few records, with counts", async () => {
    const count = 300;
    const wrong = bearer(`key-${"f".repeat(43)}`);
    const kept = () =>
      inDatabase(({ queries }) =>
        queries.all<Json>(
          "SELECT details, request_id FROM audit WHERE event = 'auth.failed' AND request_id LIKE 'flood%'",
        ),
      );
    for (let sent = 0; sent < count; sent += 50) {
      const ids = Array.from({ length: 50 }, (_, index) => `flood-${sent + index}`);
      await Promise.all(ids.map((id) => bare(daemon, "GET", "/v1/rooms", { "x-request-id": id, ...wrong })));
    }
    await daemon.restart("SIGTERM");
    const counts = (await kept()).map(({ details }) => (JSON.parse(details).count as number | undefined) ?? 1);
    expect(counts.reduce((sum, each) => sum + each, 0)).toBe(count);
    expect(counts.length).toBeLessThan(count / 2);
  });

  test("of a replayed answer reports that nothing was done", async () => {
    const headers = { "idempotency-key": "audited" };
    for (const id of ["replay-1", "replay-2"]) {
      await daemon.api("POST", "/v1/rooms", { room_id: "replayed" }, { ...headers, "x-request-id": id });
    }
    const [second, first] = await recordsOf(["replay-1", "replay-2"]);
    expect(first).toMatchObject({ event: "room.created", status: 201, room_id: "replayed", details: {} });
    expect(second).toMatchObject({ event: "room.created", status: 201, details: { replayed: true } });
  });

  test("of a write contains path, size and digest, but never the content", async () => {
    const content = "content that is nobody's business";
    await daemon.api(
      "POST",
      "/v1/rooms/r/drive/write",
      { path: "/secret.txt", content },
      { "x-request-id": "write-1" },
    );
    const [record] = await recordsOf(["write-1"]);
    const sha256 = new Bun.CryptoHasher("sha256").update(content).digest("hex");
    expect(record?.details).toEqual({ path: "/secret.txt", size_bytes: content.length, sha256 });
    expect(dumpOf(databaseFiles()).includes(content)).toBe(false);
  });
});

describe("the list", () => {
  beforeAll(async () => {
    await daemon.room("listed");
    for (let n = 0; n < 12; n++) await daemon.api("GET", `/v1/rooms/${n % 3 ? "listed" : "not-there"}`);
  });

  test("pages in either order and returns each record once", async () => {
    const all = (await daemon.ok("GET", "/v1/rooms/listed/audit?order=asc&limit=1000")).items as AuditRecord[];
    const upTo = `until=${all.at(-1)?.at}`;
    for (const order of ["asc", "desc"]) {
      const seen: number[] = [];
      let cursor: string | null = null;
      do {
        const page: Json = await daemon.ok(
          "GET",
          `/v1/rooms/listed/audit?${upTo}&order=${order}&limit=4${cursor === null ? "" : `&cursor=${cursor}`}`,
        );
        seen.push(...page.items.map(({ seq }: AuditRecord) => seq));
        cursor = page.next_cursor;
      } while (cursor !== null);
      expect(seen).toEqual(seen.toSorted((a, b) => (order === "asc" ? a - b : b - a)));
      expect(new Set(seen).size).toBe(seen.length);
      expect(seen).toEqual(expect.arrayContaining(all.map(({ seq }) => seq)));
    }
    const { next_cursor } = await daemon.ok("GET", "/v1/rooms/listed/audit?limit=1&order=asc");
    for (const query of [`order=desc&cursor=${next_cursor}`, `order=asc&cursor=${next_cursor}x`]) {
      expect((await daemon.problem("GET", `/v1/rooms/listed/audit?${query}`)).code).toBe("invalid_cursor");
    }
    expect((await daemon.problem("GET", `/v1/orgs/self/audit?order=asc&cursor=${next_cursor}`)).code).toBe(
      "invalid_cursor",
    );
  });

  test("returns the newest 200 records by default, newest first", async () => {
    const seqs = (await org()).items.map(({ seq }) => seq);
    expect(seqs).toEqual(seqs.toSorted((a, b) => b - a));
    expect(seqs.length).toBeLessThanOrEqual(200);
  });

  test("of a room contains only that room's records", async () => {
    const { items } = await daemon.ok("GET", "/v1/rooms/listed/audit?limit=1000");
    expect(new Set(items.map(({ room_id }: AuditRecord) => room_id))).toEqual(new Set(["listed"]));
  });

  test("is filtered by event, outcome, agent and time", async () => {
    const events = async (query: string) => new Set((await org(query)).items.map(({ event }) => event));
    expect(await events("event=room.rea&limit=1000")).toEqual(new Set(["room.read"]));
    expect([...(await events("event=room.&limit=1000"))].every((event) => event.startsWith("room."))).toBe(true);
    expect(await events("event=ROOM.")).toEqual(new Set());
    expect(await events("event=%25")).toEqual(new Set());
    const errors = (await org("outcome=error&limit=1000")).items;
    expect(errors.length).toBeGreaterThan(3);
    expect(new Set(errors.map(({ outcome }) => outcome))).toEqual(new Set(["error"]));
    expect((await org("agent_id=nobody")).items).toEqual([]);
    const problem = await daemon.problem("GET", "/v1/orgs/self/audit?outcome=maybe&order=up&limit=1001");
    expect(problem.errors.map(({ field }) => field).sort()).toEqual(["limit", "order", "outcome"]);
  });

  test("is filtered by door, actor, request and record, each separately", async () => {
    const { key_id, key } = await makeKey(daemon);
    const headers = { ...bearer(key), "x-request-id": "filter-mine" };
    await daemon.api("GET", "/v1/rooms/listed", undefined, headers);
    await daemon.api("GET", "/v1/rooms/not-there", undefined, { ...bearer(key), "x-request-id": "filter-other" });
    const [other, mine] = await recordsOf(["filter-mine", "filter-other"]);
    const upTo = `limit=1000&until=${other?.at}`;
    const all = (await org(upTo)).items;
    const seqs = async (query: string) => (await org(`${query}&${upTo}`)).items.map(({ seq }) => seq);
    const like = (fits: (record: AuditRecord) => boolean) => all.filter(fits).map(({ seq }) => seq);
    expect(await seqs(`actor_id=${key_id}`)).toEqual([other?.seq, mine?.seq]);
    expect(await seqs("request_id=filter-mine")).toEqual([mine?.seq]);
    expect(await seqs(`audit_id=${mine?.audit_id}`)).toEqual([mine?.seq]);
    expect(await seqs(`actor_id=${key_id}&outcome=error`)).toEqual([other?.seq]);
    expect(await seqs(`actor_id=${key_id}&request_id=filter-none`)).toEqual([]);
    for (const source of ["rest", "cli"]) {
      const found = like((each) => each.source === source);
      expect(found.length, source).toBeGreaterThan(0);
      expect(await seqs(`source=${source}`)).toEqual(found);
    }
    expect((await org("source=ssh")).items).toEqual([]);
    const summary = await daemon.ok("GET", `/v1/orgs/self/audit/summary?actor_id=${key_id}`);
    expect(summary).toMatchObject({ total: 2, outcomes: { success: 1, denied: 0, error: 1 } });
    const inRoom = await daemon.ok("GET", "/v1/rooms/listed/audit?request_id=filter-mine");
    expect(inRoom.items.map(({ seq }: AuditRecord) => seq)).toEqual([mine?.seq]);
    const problem = await daemon.problem("GET", `/v1/orgs/self/audit?source=door&actor_id=${"a".repeat(129)}`);
    expect(problem.errors.map(({ field }) => field).sort()).toEqual(["actor_id", "source"]);
  });

  test("leaves out records of successful reads on request", async () => {
    const upTo = `order=asc&limit=1000&until=${(await org("limit=1")).items[0]?.at}`;
    const all = (await org(upTo)).items;
    const without = (await org(`${upTo}&reads=false`)).items;
    expect(without).toEqual(all.filter((record) => !isReading(record)));
    expect((await org(`${upTo}&reads=true`)).items).toEqual(all);
    const events = without.map(({ event, outcome }) => `${event} ${outcome}`);
    expect(events).toEqual(expect.arrayContaining(["room.created success", "room.read error"]));
    expect(events).not.toContain("room.read success");
    const printed = await run(daemon, "audit", "list", "--org", "--no-reads", "--record", without[0]?.audit_id ?? "");
    expect(printed.items).toEqual([without[0]]);
    const summary = await daemon.ok("GET", `/v1/orgs/self/audit/summary?reads=false&until=${all.at(-1)?.at}`);
    expect(summary.total).toBe(without.length);
  });

  test("accepts RFC 3339 and Unix seconds, and rejects invalid times", async () => {
    const all = (await org("order=asc&limit=1000")).items;
    const middle = all[Math.floor(all.length / 2)];
    if (!middle) throw new Error("no records");
    const after = all.filter(({ at }) => at >= middle.at).map(({ seq }) => seq);
    const seconds = Date.parse(middle.at) / 1000;
    const offset = new Date(Date.parse(middle.at) + 2 * 3_600_000).toISOString().replace("Z", "%2B02:00");
    const last = all.at(-1)?.at;
    for (const since of [middle.at, String(seconds), offset]) {
      const found = (await org(`order=asc&limit=1000&since=${since}&until=${last}`)).items.map(({ seq }) => seq);
      expect({ since, found }).toEqual({ since, found: after });
    }
    const before = (await org(`order=asc&limit=1000&until=${middle.at}`)).items;
    expect(before.at(-1)?.at).toBe(middle.at);
    expect((await org("since=999999999999")).items).toEqual([]);
    expect((await org("until=999999999999&limit=1")).items).toHaveLength(1);
    expect((await org("until=0")).items).toEqual([]);
    for (const none of [
      "2026-13-01T00:00:00Z",
      "2026-01-01T25:00:00Z",
      "yesterday",
      "2026-01-01",
      "-1",
      "",
      "1e9",
      "NaN",
    ]) {
      const { status, errors } = await daemon.problem("GET", `/v1/orgs/self/audit?since=${none}&until=${none}`);
      expect({ none, status, fields: errors.map(({ field }) => field) }).toEqual({
        none,
        status: 422,
        fields: ["since", "until"],
      });
    }
  });

  test("is empty past its end, and 404 for an unknown room", async () => {
    expect(await daemon.problem("GET", "/v1/rooms/nowhere/audit")).toMatchObject({ code: "room_not_found" });
    expect(await daemon.problem("GET", "/v1/orgs/org_01ARZ3NDEKTSV4RRFFQ69G5FAV/audit")).toMatchObject({
      status: 404,
      code: "org_not_found",
    });
  });
});

describe("the export", () => {
  const lines = async (path: string, query = ""): Promise<Json[]> => {
    const answer = await daemon.api("GET", `${path}?${query}`, undefined, { accept: "application/x-ndjson" });
    expect([answer.status, answer.headers.get("content-type")]).toEqual([200, "application/x-ndjson"]);
    const text = typeof answer.body === "string" ? answer.body : `${JSON.stringify(answer.body)}\n`;
    return text
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line));
  };

  test("contains every matching record, one per line, regardless of the page size", async () => {
    const { items } = await org("order=asc&limit=1000");
    const all = await lines("/v1/orgs/self/audit", "order=asc");
    expect(all.slice(0, items.length)).toEqual(items);
    expect(all.map(({ seq }) => seq)).toEqual(all.map((_, index) => index + 1));
    const room = await lines("/v1/rooms/listed/audit", "event=room.r");
    expect(new Set(room.map(({ event, room_id }) => `${event} ${room_id}`))).toEqual(new Set(["room.read listed"]));
    expect(await lines("/v1/orgs/self/audit", "event=none.")).toEqual([]);
  });

  test("returns at most the requested number of records, and continues at a cursor", async () => {
    const { items, next_cursor } = await org("order=asc&limit=5");
    expect((await lines("/v1/orgs/self/audit", "order=asc&limit=5")).map(({ seq }) => seq)).toEqual(
      items.map(({ seq }) => seq),
    );
    const further = await lines("/v1/orgs/self/audit", `order=asc&limit=3&cursor=${next_cursor}`);
    expect(further.map(({ seq }) => seq)).toEqual([6, 7, 8]);
    expect(
      (await daemon.problem("GET", "/v1/orgs/self/audit?cursor=x", undefined, { accept: "application/x-ndjson" })).code,
    ).toBe("invalid_cursor");
  });
});

describe("the summary", () => {
  test("counts the same records as the list, and summarizes them in one paragraph", async () => {
    const items: AuditRecord[] = (await daemon.ok("GET", "/v1/rooms/listed/audit?limit=1000")).items;
    const summary = await daemon.ok("GET", `/v1/rooms/listed/audit/summary?until=${items[0]?.at}`);
    const included = items.filter(({ at }) => at <= (items[0]?.at ?? ""));
    expect(summary.total).toBe(included.length);
    expect([summary.from_at, summary.to_at]).toEqual([items.at(-1)?.at, items[0]?.at]);
    const of = (outcome: string) => included.filter((record) => record.outcome === outcome).length;
    expect(summary.outcomes).toEqual({ success: of("success"), denied: of("denied"), error: of("error") });
    const reads = included.filter(({ event }) => event === "room.read").length;
    expect(summary.events).toContainEqual({ event: "room.read", count: reads });
    expect(summary.text).toMatch(/\blisted\b/);
    expect(summary.text).toContain(`room.read (${reads})`);
    expect(summary.text).not.toContain("\n");
  });

  test("of the organization accepts the filters, and gives the reasons of failed calls", async () => {
    const summary = await daemon.ok("GET", "/v1/orgs/self/audit/summary?outcome=error");
    expect(summary.outcomes).toMatchObject({ success: 0, denied: 0, error: summary.total });
    expect(summary.errors.map(({ code }: Json) => code)).toContain("room_not_found");
    expect(summary.text).toContain("room_not_found");
    const none = await daemon.ok("GET", "/v1/orgs/self/audit/summary?agent_id=nobody");
    expect(none).toMatchObject({
      total: 0,
      from_at: null,
      events: [],
    });
    expect((await daemon.problem("GET", "/v1/orgs/self/audit/summary?since=yesterday")).status).toBe(422);
  });
});

describe("a destroyed room", () => {
  test("keeps its records in the organization's audit, under its name", async () => {
    await daemon.room("gone");
    await daemon.ok("POST", "/v1/rooms/gone/drive/write", { path: "/f", content: "x" });
    await daemon.ok("DELETE", "/v1/rooms/gone");
    const events = (await org("room_id=gone&order=asc")).items.map(({ event }) => event);
    expect(events).toEqual(["room.created", "drive.written", "room.destroyed"]);
    const summary = await daemon.ok("GET", "/v1/orgs/self/audit/summary?room_id=gone");
    expect(summary).toMatchObject({ total: 3, text: expect.stringMatching(/\bgone\b.*\b3\b/) });
  });
});

describe("no usable secret", () => {
  test("is in the database, its log or the daemon's log: no key, not even in part", async () => {
    const { key } = await makeKey(daemon);
    const { key: revoked, key_id } = await makeKey(daemon);
    await run(daemon, "key", "revoke", key_id);
    for (const each of [key, revoked, "key-malformed-but-secret"]) await bare(daemon, "GET", "/v1/me", bearer(each));
    await daemon.api("POST", "/v1/rooms", `{"room_id": ${key}}`);
    const secrets = [daemon.apiKey, daemon.operatorKey, key, revoked];
    const files = databaseFiles();
    expect(files).toContain(join(daemon.dataDir, "roomd.db-wal"));
    const dump = dumpOf(files);
    expect(dump).toContain(new Bun.CryptoHasher("sha256").update(key).digest("hex"));
    for (const secret of secrets) {
      // The first 8 characters are shown to users; the other 35 are the secret.
      const rest = secret.slice("key-".length + 8);
      for (const text of [dump, daemon.log]) {
        expect(text.includes(secret.slice(0, 20))).toBe(false);
        expect(text.includes(rest.slice(0, 12))).toBe(false);
      }
    }
    expect(daemon.log).not.toMatch(/bearer|malformed-but-secret/i);
  });
});

describe("the chain", () => {
  test("is intact according to service and host", async () => {
    const verdict = await daemon.ok("GET", "/v1/orgs/self/audit/verify");
    expect(verdict).toMatchObject({ ok: true, from_seq: 1, broken_at: null });
    const { items } = await org("limit=1");
    expect(items[0]?.seq).toBeGreaterThanOrEqual(verdict.to_seq);
    const result = await daemon.cli(["audit", "verify", "--json"]);
    expect(result.status).toBe(0);
    expect(JSON.parse(result.stdout).ok).toBe(true);
    expect(await daemon.ok("GET", "/v1/rooms/r/audit/verify")).toMatchObject({ ok: true, from_seq: 1 });
  });

  test("is verified for a room-bound key as far as the room's own records reach", async () => {
    await daemon.room("walled");
    await daemon.room("beyond");
    const { key } = await makeKey(daemon, { rooms: ["walled"] });
    const { items } = await daemon.ok("GET", "/v1/rooms/walled/audit?order=asc&limit=1000");
    const own = await daemon.api("GET", "/v1/rooms/walled/audit/verify", undefined, bearer(key));
    const last = items.at(-1).seq;
    expect(own.body).toMatchObject({ ok: true, from_seq: items[0].seq, broken_at: null });
    // The records of these calls are in the room's share, too.
    expect(own.body.to_seq).toBeGreaterThanOrEqual(last);
    const whole = await daemon.ok("GET", "/v1/orgs/self/audit/verify");
    for (let n = 0; n < 20; n++) await daemon.room(`beyond-${n}`);
    const shown = (await daemon.api("GET", "/v1/rooms/walled/audit/verify", undefined, bearer(key))).body.to_seq;
    expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).to_seq).toBeGreaterThanOrEqual(whole.to_seq + 20);
    expect(shown).toBeLessThanOrEqual(whole.to_seq);
  });

  test("truncated together with its head is detected with a file of heads that is stored elsewhere", async () => {
    // The daemon writes the heads when it ends, if not before.
    await daemon.restart("SIGTERM");
    const heads = join(daemon.home, "heads.ndjson");
    copyFileSync(join(daemon.dataDir, "audit-heads.ndjson"), heads);
    const directory = join(daemon.home, "cut");
    mkdirSync(directory);
    const file = join(directory, "roomd.db");
    await inDatabase((connection) => connection.execute(`VACUUM INTO '${file}'`));
    const known = readFileSync(heads, "utf8")
      .trimEnd()
      .split("\n")
      .map((line) => JSON.parse(line));
    const { seq } = known.findLast(({ org_id }) => org_id === daemon.orgId);
    await inDatabase((connection) => {
      const triggers = connection.queries.all<Json>("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
      for (const { name } of triggers) connection.execute(`DROP TRIGGER ${name}`);
      const condition = `org_key = '${daemon.orgId}'`;
      connection.execute(`DELETE FROM audit WHERE ${condition} AND seq >= ${seq - 1}`);
      connection.execute(
        `UPDATE audit_heads SET seq = ${seq - 2}, hash = (SELECT hash FROM audit WHERE ${condition} AND seq = ${seq - 2}) WHERE ${condition}`,
      );
    }, file);
    const verify = (...args: string[]) =>
      daemon.cli(["audit", "verify", "--host", ...args], undefined, { ROOMD_DATA_DIR: directory });
    expect((await verify()).status).toBe(0);
    const { status, stdout } = await verify("--heads", heads);
    expect(status).toBe(1);
    expect(stdout).toMatch(new RegExp(`^${daemon.orgId}: .*\\b${seq - 1}\\b`, "m"));
  });

  test("rejects every statement that would change it in the live database", async () => {
    for (const statement of [
      "UPDATE audit SET status = 200",
      "UPDATE audit SET details = '{}' WHERE seq = 1",
      "DELETE FROM audit",
      "DELETE FROM audit WHERE seq = (SELECT max(seq) FROM audit)",
      "REPLACE INTO audit SELECT * FROM audit WHERE seq = 1",
      "REPLACE INTO audit_heads SELECT org_key, seq - 1, hash FROM audit_heads",
      "UPDATE audit_heads SET seq = seq - 1",
      "UPDATE audit_heads SET seq = seq + 2",
      "DELETE FROM audit_heads",
    ]) {
      const attempt = inDatabase((connection) => connection.execute(statement));
      await expect(attempt, statement).rejects.toThrow(/append-only/);
    }
    expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
  });

  describe("of a copy", () => {
    let original: string;
    let last: number;
    beforeAll(async () => {
      const directory = join(daemon.home, "copies");
      mkdirSync(directory);
      original = join(directory, "original.db");
      await inDatabase((connection) => {
        connection.execute(`VACUUM INTO '${original}'`);
      });
      last = await inDatabase(
        ({ queries }) => queries.all<Json>(`SELECT seq FROM audit_heads WHERE org_key = '${daemon.orgId}'`)[0].seq,
        original,
      );
      expect(last).toBeGreaterThan(50);
    });

    let made = 0;
    /** Result of `roomd audit verify` on a copy of the database that `tamper` has changed. */
    async function verdictAfter(tamper: (file: string) => unknown): Promise<{ status: number; broken: Json[] }> {
      const directory = join(daemon.home, "copies", String(++made));
      mkdirSync(directory);
      const file = join(directory, "roomd.db");
      copyFileSync(original, file);
      await tamper(file);
      const result = await daemon.cli(["audit", "verify", "--host", "--json"], undefined, {
        ROOMD_DATA_DIR: directory,
      });
      return { status: result.status, broken: JSON.parse(result.stdout).filter(({ ok }: Json) => !ok) };
    }

    /** Changes by an attacker with write access to the file: the triggers are dropped first. */
    const bySql =
      (...statements: string[]) =>
      (file: string) =>
        inDatabase((connection) => {
          const triggers = connection.queries.all<Json>("SELECT name FROM sqlite_schema WHERE type = 'trigger'");
          for (const { name } of triggers) connection.execute(`DROP TRIGGER ${name}`);
          for (const statement of statements) connection.execute(statement.replaceAll("$ORG", `'${daemon.orgId}'`));
        }, file);

    test("is intact if untouched", async () => {
      expect(await verdictAfter(bySql())).toEqual({ status: 0, broken: [] });
    });

    test.each([
      ["a changed status", 20, "UPDATE audit SET status = 299 WHERE org_key = $ORG AND seq = 20"],
      ["a changed actor", 7, "UPDATE audit SET actor_id = 'kid_x' WHERE org_key = $ORG AND seq = 7"],
      ["a changed moment", 1, "UPDATE audit SET at = '2020-01-01T00:00:00.000Z' WHERE org_key = $ORG AND seq = 1"],
      ["a changed detail", 9, `UPDATE audit SET details = '{"a":1}' WHERE org_key = $ORG AND seq = 9`],
      ["a changed hash", 12, "UPDATE audit SET hash = prev_hash WHERE org_key = $ORG AND seq = 12"],
      ["a dropped record", 30, "DELETE FROM audit WHERE org_key = $ORG AND seq = 30"],
      ["a dropped beginning", 1, "DELETE FROM audit WHERE org_key = $ORG AND seq <= 3"],
    ])("with %s is broken at %i", async (_, seq, statement) => {
      const { status, broken } = await verdictAfter(bySql(statement));
      expect(status).toBe(1);
      expect(broken).toMatchObject([{ org_id: daemon.orgId, ok: false, broken_at: seq }]);
    });

    test("with two swapped records is broken at the first of them", async () => {
      const { broken } = await verdictAfter(
        bySql(
          "UPDATE audit SET seq = -1 WHERE org_key = $ORG AND seq = 14",
          "UPDATE audit SET seq = 14 WHERE org_key = $ORG AND seq = 15",
          "UPDATE audit SET seq = 15 WHERE org_key = $ORG AND seq = -1",
        ),
      );
      expect(broken).toMatchObject([{ org_id: daemon.orgId, broken_at: 14 }]);
    });

    test("without its last records is broken at the first missing one", async () => {
      const cut = last - 4;
      const { broken } = await verdictAfter(bySql(`DELETE FROM audit WHERE org_key = $ORG AND seq >= ${cut}`));
      expect(broken).toMatchObject([{ org_id: daemon.orgId, broken_at: cut }]);
    });

    test("without records or without its head is broken", async () => {
      const none = await verdictAfter(bySql("DELETE FROM audit WHERE org_key = $ORG"));
      expect(none.broken).toMatchObject([{ org_id: daemon.orgId, broken_at: 1 }]);
      const headless = await verdictAfter(bySql("DELETE FROM audit_heads WHERE org_key = $ORG"));
      expect(headless.broken).toMatchObject([{ org_id: daemon.orgId, broken_at: last + 1 }]);
    });

    test("with one byte changed in the database file is broken at that record", async () => {
      const { seq } = (await org("limit=1000")).items.find(({ request_id }) => request_id === "write-1") ?? {};
      const { broken } = await verdictAfter((file) => {
        const bytes = readFileSync(file);
        // SQLite does not erase moved cells: the file may contain the record more than once.
        for (let at = bytes.indexOf("write-1"); at >= 0; at = bytes.indexOf("write-1", at))
          bytes[at] = "v".charCodeAt(0);
        writeFileSync(file, bytes);
      });
      expect(broken).toMatchObject([{ org_id: daemon.orgId, broken_at: seq }]);
    });
  });
});

test("stays intact when expired records are deleted", async () => {
  await using short = await TestDaemon.start({ env: { ROOMD_AUDIT_RETENTION: "1s" } });
  await short.room("r");
  const [first = ""] = (await short.api("GET", "/v1/orgs/self/events?after=0&follow=false")).body.split("\n");
  const verdict = await until(
    () => short.ok("GET", "/v1/orgs/self/audit/verify"),
    ({ from_seq }) => from_seq > JSON.parse(first).seq + 1,
  );
  expect(verdict).toMatchObject({ ok: true, broken_at: null });
  const { items } = await short.ok("GET", "/v1/orgs/self/audit?order=asc");
  expect(items[0].seq).toBeGreaterThan(1);
  expect(items.map(({ event }: Json) => event)).toContain("audit.purged");
  for (const timeline of [`orgs/self/events?after=${JSON.parse(first).cursor}`, "rooms/r/events?after=1"]) {
    expect(await short.problem("GET", `/v1/${timeline}&follow=false`)).toMatchObject({
      status: 410,
      code: "history_gone",
    });
  }
  const result = await short.cli(["audit", "verify", "--host"]);
  expect(result).toMatchObject({ status: 0, stdout: expect.stringContaining("are whole") });
});
