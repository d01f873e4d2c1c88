/** Operator commands on the host of a running daemon: keys, organizations, starts, stops, and two daemons on one host. */
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { BINARY, type Json, TestDaemon } from "../harness/daemon.ts";
import { bearer, type KeyOptions, makeOrg, run, until } from "./calls.ts";
import { describeTemplate } from "./sandboxes/described-template.ts";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

const KEY = /^key-[0-9A-Za-z]{43}$/;
const me = async (key: string) => (await daemon.api("GET", "/v1/me", undefined, bearer(key))).status;

/** By the operator's command. */
async function makeKey(by: TestDaemon, { scopes = [], rooms = [] }: KeyOptions = {}): Promise<Json> {
  const bounds = [...scopes.flatMap((scope) => ["--scope", scope]), ...rooms.flatMap((room) => ["--room", room])];
  return await run(by, "key", "create", "--name", "test", "--org", by.orgId, ...bounds);
}

describe("init", () => {
  test("creates an organization and two different keys", () => {
    expect(daemon.orgId).toMatch(/^org_[0-9A-Z]{26}$/);
    expect(daemon.apiKey).toMatch(KEY);
    expect(daemon.operatorKey).toMatch(KEY);
    expect(daemon.apiKey).not.toBe(daemon.operatorKey);
  });

  test("a second time refuses with a remedy, and changes nothing", async () => {
    const before = await run(daemon, "org", "list");
    const again = await daemon.cli(["init"]);
    expect(again.status).not.toBe(0);
    expect(again.stdout).toBe("");
    // The remedy.
    expect(again.stderr).toContain("key create");
    expect(await run(daemon, "org", "list")).toEqual(before);
    expect(await me(daemon.apiKey)).toBe(200);
  });
});

test("init prints the plan of its organization, its limits and how to change it", async () => {
  // Standalone: a cluster member cannot be initialized again.
  const env = { ROOMD_PLANS_STARTER_ROOMS_HARD_CAP: "77", ROOMD_CLUSTER_URL: "" };
  await using other = await TestDaemon.start({ env });
  await other.end("SIGTERM");
  for (const name of readdirSync(other.dataDir)) rmSync(join(other.dataDir, name), { recursive: true });
  const { status, stdout, stderr } = await other.cli(["init", "--plan", "starter"]);
  expect(status).toBe(0);
  expect(stdout).not.toContain("plan");
  expect(stderr).toMatch(/\bstarter\b.*\b77 rooms\b/);
  expect(stderr).toContain("org set-plan");
  expect((await run(other, "org", "list")).items).toMatchObject([{ plan: "starter" }]);
});

test("another user of the host gets an explanation, and no access", () => {
  const directory = mkdtempSync(join(tmpdir(), "roomd-other-user-"));
  try {
    chmodSync(directory, 0o755);
    const program = join(directory, "roomd");
    copyFileSync(BINARY, program);
    const asNobody = ["--reuid=65534", "--regid=65534", "--clear-groups", program];
    for (const words of [
      "org list",
      "init",
      "template list",
      "audit --host",
      "backup /dev/null",
      "restore /dev/null",
    ]) {
      const { status, stdout, stderr } = spawnSync("setpriv", [...asNobody, ...words.split(" ")], {
        env: daemon.env,
        encoding: "utf8",
      });
      expect([words, status, stdout]).toEqual([words, 1, ""]);
      expect(stderr).toContain("as root");
    }
    // Keys are also reached over the API, with a key of one's own.
    const keys = spawnSync("setpriv", [...asNobody, "key", "list"], { env: daemon.env, encoding: "utf8" });
    expect([keys.status, keys.stdout]).toEqual([2, ""]);
    expect(keys.stderr).toContain("ROOMD_API_KEY");
  } finally {
    rmSync(directory, { recursive: true });
  }
});

test("the operator sees the same templates as clients", async () => {
  const record = describeTemplate(daemon, "described");
  expect((await run(daemon, "template", "list")).items).toEqual([record]);
  expect(await daemon.ok("GET", "/v1/templates/described")).toEqual({ ...record, visibility: "host" });
});

test("objects created on the host have the same limits as over the API", async () => {
  const before = await run(daemon, "org", "list");
  const { key_id } = await makeKey(daemon);
  const file = join(daemon.home, "key.pub");
  writeFileSync(file, "ssh-ed25519 AAAA a");
  const long = "x".repeat(129);
  for (const [field, ...args] of [
    ["name", "org", "create", "--name", ""],
    ["name", "org", "create", "--name", long],
    ["name", "key", "create", "--name", "a\u001b[31m"],
    ["room_ids", "key", "create", "--name", "a", "--room", "not a room"],
    ["agent_id", "key", "create", "--name", "a", "--agent", "sbx_a"],
    ["expires_in_seconds", "key", "create", "--name", "a", "--expires-in", "99999d"],
    ["grace_seconds", "key", "rotate", key_id, "--grace", "31d"],
    ["name", "org", "ssh-key", "add", file, "--name", long],
  ] as const) {
    const { status, stderr } = await daemon.cli([...args]);
    expect([field, status, stderr]).toEqual([field, 1, expect.stringContaining(field)]);
  }
  await run(daemon, "key", "revoke", key_id);
  expect(await run(daemon, "org", "list")).toEqual(before);
});

describe("keys", () => {
  test("work immediately after creation, and not after revocation", async () => {
    for (let n = 0; n < 5; n++) {
      const { key, key_id } = await makeKey(daemon);
      expect(await me(key)).toBe(200);
      await run(daemon, "key", "revoke", key_id);
      expect(await me(key)).toBe(401);
    }
  });

  test("in heavy use are refused from the moment of their revocation, without a late success", async () => {
    const { key, key_id } = await makeKey(daemon);
    let revokedAt = Number.POSITIVE_INFINITY;
    let stop = false;
    const late: number[] = [];
    const callers = Array.from({ length: 8 }, async () => {
      while (!stop) {
        const sentAt = performance.now();
        if ((await me(key)) === 200 && sentAt > revokedAt) late.push(sentAt - revokedAt);
      }
    });
    await run(daemon, "key", "revoke", key_id);
    revokedAt = performance.now();
    await until(
      () => me(key),
      (status) => status === 401,
      1000,
    );
    stop = true;
    await Promise.all(callers);
    expect(late).toEqual([]);
  });

  test("are listed by prefix, never in full", async () => {
    const { key, key_id } = await makeKey(daemon, { scopes: ["rooms:read"], rooms: ["a"] });
    const { items } = await run(daemon, "key", "list", "--org", daemon.orgId);
    const shown = items.find((each: Json) => each.key_id === key_id);
    expect(shown).toMatchObject({
      name: "test",
      state: "active",
      scopes: ["rooms:read"],
      room_ids: ["a"],
      revoked_at: null,
    });
    expect(shown.key_prefix).toBe(key.slice(0, 12));
    expect(JSON.stringify(items)).not.toContain(key.slice(0, 20));
    expect(JSON.stringify(items)).not.toContain(new Bun.CryptoHasher("sha256").update(key).digest("hex"));
    await run(daemon, "key", "revoke", key_id);
    const after = (await run(daemon, "key", "list", "--org", daemon.orgId)).items;
    expect(after.find((each: Json) => each.key_id === key_id)).toMatchObject({
      state: "revoked",
      revoked_at: expect.stringMatching(/Z$/),
    });
  });

  test("are rotated with a grace period in which both work, and without one", async () => {
    const old = await makeKey(daemon, { scopes: ["rooms:read"] });
    const made = await run(daemon, "key", "rotate", old.key_id, "--grace", "1h");
    expect(made).toMatchObject({ key: expect.stringMatching(KEY), replaces: { replaced_by: made.key_id } });
    expect([await me(old.key), await me(made.key)]).toEqual([200, 200]);
    const next = await run(daemon, "key", "rotate", made.key_id, "--grace", "0s");
    expect([await me(made.key), await me(next.key)]).toEqual([401, 200]);
    const again = await daemon.cli(["key", "rotate", old.key_id]);
    expect([again.status === 0, again.stderr.includes(made.key_id)]).toEqual([false, true]);
  });

  test("that do not exist or are revoked cannot be revoked, and unknown organizations get none", async () => {
    const { key_id } = await makeKey(daemon);
    await run(daemon, "key", "revoke", key_id);
    for (const args of [
      ["key", "revoke", key_id],
      ["key", "revoke", "kid_none"],
      ["key", "create", "--name", "x", "--org", "org_none"],
      ["key", "list", "--org", "org_none"],
      ["key", "create", "--name", "x", "--scope", "everything"],
    ]) {
      const refused = await daemon.cli(args);
      expect([args.join(" "), refused.status === 0, refused.stdout]).toEqual([args.join(" "), false, ""]);
      expect(refused.stderr.trim()).not.toBe("");
      expect(refused.stderr).not.toMatch(/\bat \w+ \(|SQLITE/);
    }
  });

  test("have audit records of creation and revocation in their organization", async () => {
    const { key_id } = await makeKey(daemon);
    await run(daemon, "key", "revoke", key_id);
    const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?event=key.&limit=2");
    expect(items.map(({ event, source, actor, details }: Json) => [event, source, actor.type, details.key_id])).toEqual(
      [
        ["key.revoked", "cli", "operator", key_id],
        ["key.created", "cli", "operator", key_id],
      ],
    );
  });
});

describe("organizations", () => {
  test("are created while a daemon runs, each with a key that works immediately", async () => {
    const made = await makeOrg(daemon, "Acme");
    const { body } = await daemon.api("GET", "/v1/me", undefined, bearer(made.api_key));
    expect(body).toMatchObject({ org_id: made.org_id, plan: "free", name: "first" });
    const starter = await run(daemon, "org", "create", "--name", "Big", "--plan", "starter");
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(starter.api_key))).body.plan).toBe("starter");
    expect((await run(daemon, "org", "list")).items.map(({ name }: Json) => name)).toEqual(["default", "Acme", "Big"]);
    const again = await daemon.cli(["org", "create", "--name", "Acme"]);
    expect([again.status === 0, again.stderr.includes("Acme")]).toEqual([false, true]);
  });
});

describe("two daemons", () => {
  test("with separate directories and ports run in parallel without affecting each other", async () => {
    const other = await TestDaemon.start();
    try {
      await daemon.room("mine");
      await other.room("theirs");
      expect((await other.problem("GET", "/v1/rooms/mine")).code).toBe("room_not_found");
      expect((await other.api("GET", "/v1/me", undefined, bearer(daemon.apiKey))).body.code).toBe("invalid_api_key");
      expect(await other.end("SIGTERM")).toBe(0);
      expect(await me(daemon.apiKey)).toBe(200);
    } finally {
      await other.stop();
    }
  });

  test("cannot share a runtime directory: the second reports that and leaves the first alone", async () => {
    const second = await daemon.cli(["serve"], undefined, { ROOMD_DATA_DIR: join(daemon.home, "second") });
    expect(second.status).not.toBe(0);
    expect(second.stderr).toMatch(new RegExp(`\\b${daemon.pid}\\b.*\\bruntime_dir\\b`));
    expect(second.stdout).toBe("");
    expect(await me(daemon.apiKey)).toBe(200);
  });
});

describe("the end of a daemon", () => {
  test.each(["SIGTERM", "SIGINT"] as const)(
    "by %s is prompt with status 0, also with an idle connection",
    async (signal) => {
      const own = await TestDaemon.start();
      try {
        const { hostname, port } = new URL(own.url);
        const idle = connect({ host: hostname, port: Number(port) });
        idle.write(`GET /health HTTP/1.1\r\nHost: x\r\n\r\n`);
        await new Promise((answered) => idle.once("data", answered));
        const startedAt = performance.now();
        expect(await own.end(signal)).toBe(0);
        expect(performance.now() - startedAt).toBeLessThan(5000);
        idle.destroy();
        // A cold process on a busy machine may be slow to start.
        const warnings = own.logged({ level: "warn" }).filter(({ label, ms }) => !(label && ms));
        expect([...warnings, ...own.logged({ level: "error" })]).toEqual([]);
        await expect(fetch(`${own.url}/health`)).rejects.toThrow();
      } finally {
        await own.stop();
      }
    },
  );

  test("answers calls in progress", async () => {
    const own = await TestDaemon.start();
    try {
      await own.room("r");
      const { hostname, port } = new URL(own.url);
      const socket = connect({ host: hostname, port: Number(port) });
      let text = "";
      socket.on("data", (chunk) => {
        text += chunk;
      });
      socket.write(
        `PUT /v1/rooms/r/drive/files/late HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer ${own.apiKey}\r\nContent-Length: 4\r\nConnection: close\r\n\r\nla`,
      );
      const directory = join(own.dataDir, "rooms");
      await until(
        () => readdirSync(directory, { recursive: true }).map(String),
        (names) => names.some((name) => name.includes(".roomd-")),
      );
      const ended = own.end("SIGTERM");
      await until(
        () => fetch(`${own.url}/health`).catch(() => null),
        (answer) => answer === null,
      );
      socket.write("te");
      await until(
        () => text,
        (seen) => seen.startsWith("HTTP/1.1 201 "),
      );
      expect(await ended).toBe(0);
    } finally {
      await own.stop();
    }
  });

  test("preserves rooms, files, keys and audit", async () => {
    const { key } = await makeKey(daemon, { scopes: ["rooms:read", "drive:read"] });
    const room = await daemon.room("stays");
    await daemon.ok("POST", "/v1/rooms/stays/drive/write", { path: "f", content: "kept" });
    const verified = await daemon.ok("GET", "/v1/orgs/self/audit/verify");
    for (const signal of ["SIGTERM", "SIGKILL"] as const) {
      await daemon.restart(signal);
      expect(await daemon.ok("GET", "/v1/rooms/stays")).toMatchObject({
        room_uid: room.room_uid,
        created_at: room.created_at,
        drive: { file_count: 1 },
      });
      const read = await daemon.api("GET", "/v1/rooms/stays/drive/read?path=f", undefined, bearer(key));
      expect(read.body.content).toBe("kept");
      const again = await daemon.ok("GET", "/v1/orgs/self/audit/verify");
      expect(again.ok).toBe(true);
      expect(again.to_seq).toBeGreaterThan(verified.to_seq);
    }
  });

  const KILL_MS = 60_000;
  test("by kill -9 during 200 concurrent creates loses no answered one, and leaves none incomplete", {
    timeout: KILL_MS,
  }, async () => {
    const own = await TestDaemon.start();
    try {
      const made: string[] = [];
      let killed: Promise<unknown> | undefined;
      // Each creator sends its next call on the response to the previous one, so that 200 are always in flight.
      const creators = Array.from({ length: 200 }, async (_, creator) => {
        for (let n = 0; ; n++) {
          const answer = await own.api("POST", "/v1/rooms", { room_id: `r-${creator}-${n}` }).catch(() => null);
          if (answer?.status !== 201) return;
          made.push(answer.body.room_uid);
          if (made.length >= 500) killed ??= own.end("SIGKILL");
        }
      });
      await Promise.all(creators);
      await killed;
      await own.serve();
      const rooms = (await own.ok("GET", "/v1/rooms?limit=1000")).items;
      console.log(`kill -9 under 200 creates: ${made.length} were answered, ${rooms.length} rooms are there`);
      const uids = rooms.map(({ room_uid }: Json) => room_uid);
      expect(uids).toEqual(expect.arrayContaining(made));
      expect(readdirSync(join(own.dataDir, "rooms")).sort()).toEqual(uids.sort());
      for (const { room_id } of rooms) {
        expect((await own.api("POST", `/v1/rooms/${room_id}/drive/write`, { path: "f", content: "x" })).status).toBe(
          201,
        );
      }
      // Every room that is there has its record, and the chain is whole.
      const verdict = await own.ok("GET", "/v1/orgs/self/audit/verify");
      expect(verdict).toMatchObject({ ok: true });
    } finally {
      await own.stop();
    }
  });

  test("during a room's erasure is repaired at the next start", async () => {
    const own = await TestDaemon.start({ env: { ROOMD_DRIVE_RETENTION: "0s" } });
    try {
      for (let n = 0; n < 10; n++) await own.room(`r-${n}`);
      const ends = Array.from({ length: 10 }, (_, n) => own.api("DELETE", `/v1/rooms/r-${n}`).catch(() => null));
      await Promise.race(ends);
      await own.end("SIGKILL");
      const answered = (await Promise.all(ends)).filter((answer) => answer?.status === 200);
      await own.serve();
      // Rooms that were on their way out are taken up in the background.
      const going = () => own.ok("GET", "/v1/rooms?state=destroying");
      await until(going, ({ items }: Json) => items.length === 0);
      const left = (await own.ok("GET", "/v1/rooms?limit=100")).items;
      expect(left.length + answered.length).toBeLessThanOrEqual(10);
      expect(readdirSync(join(own.dataDir, "rooms")).sort()).toEqual(left.map(({ room_uid }: Json) => room_uid).sort());
      expect(left.every(({ state }: Json) => state === "active")).toBe(true);
      // Erasure is in the background, no caller waits for it.
      const retired = () => (existsSync(join(own.dataDir, "retired")) ? readdirSync(join(own.dataDir, "retired")) : []);
      await until(
        async () => retired(),
        (names) => names.length === 0,
      );
    } finally {
      await own.stop();
    }
  });
});
