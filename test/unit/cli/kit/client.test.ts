import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { loadSelfSigned } from "../../../../daemon/edge/http/tls-self-signed.ts";
import { problem, run, runOnTerminal, scratch, standIn } from "../cli-fixture.ts";

const ROOM = {
  room_id: "a",
  room_uid: "rom_1",
  state: "active",
  status: { reason: "active", message: "The room is active.", last_transition_at: "2026-01-31T12:00:00.000Z" },
  sandbox_count: 2,
  created_at: "2026-01-31T12:00:00.000Z",
};
const ROOMS = {
  items: [{ ...ROOM, drive: { used_bytes: 2048, limit_bytes: 1, file_count: 3 }, expires_at: null }],
  next_cursor: "c1",
  org_id: "org_1",
};

test("sends the key and the given fields, and nothing else", async () => {
  await using service = await standIn(() => Response.json(ROOM, { status: 201 }));
  const ran = await run(["room", "create", "a", "--label", "x=1", "--label", "y=a=b", "--ttl", "2h"], service);
  expect(ran).toEqual({ status: 0, stdout: expect.stringMatching(/\ba\b.*active.*rom_1.*\n$/), stderr: "" });
  expect(service.seen[0]).toMatchObject({
    method: "POST",
    path: "/v1/rooms",
    body: { room_id: "a", labels: { x: "1", y: "a=b" }, ttl_seconds: 7200 },
  });
  expect(service.seen[0]?.headers.get("authorization")).toBe("Bearer key-test");
  await run(["room", "create", "a"], service);
  expect(service.seen[1]?.body).toEqual({ room_id: "a" });
});

test("rejects a name that changes the request's path", async () => {
  await using service = await standIn(() => Response.json(ROOM));
  const ran = await run(["room", "get", ".."], service);
  expect(ran).toMatchObject({ status: 2, stderr: expect.stringContaining("..") });
  expect(service.seen).toEqual([]);
});

test("prints a table for people and the service's own JSON for programs", async () => {
  const text = JSON.stringify(ROOMS, null, 1);
  await using service = await standIn(() => new Response(text, { headers: { "Content-Type": "application/json" } }));
  const people = await run(["room", "list", "--label", "team=web", "--limit", "1", "--cursor", "c/0"], service);
  expect(people.stdout.split("\n")).toEqual([
    expect.stringMatching(/^ROOM {2}STATE {3}SANDBOXES {2}DRIVE {4}FILES {2}CREATED {2,}EXPIRES$/),
    expect.stringMatching(/^a {5}active {2}2 {10}2\.0 KiB {2}3 {6}\d+ d ago {2}-$/),
    "more with --cursor c1",
    "",
  ]);
  const [path, query] = service.seen[0]?.path.split("?") ?? [];
  expect([path, query?.split("&").sort()]).toEqual(["/v1/rooms", ["cursor=c%2F0", "label=team%3Aweb", "limit=1"]]);
  const programs = await run(["room", "list", "--json"], service);
  expect(programs).toEqual({ status: 0, stdout: `${text}\n`, stderr: "" });
});

test("JSON output contains no control characters and parses to the same value", async () => {
  const body = { ...ROOM, labels: { "\u009b31m": "\u007f\u0085\u001b[2J" } };
  await using service = await standIn(() => Response.json(body, { status: 201 }));
  const shown = await run(["room", "create", "a", "--json"], service);
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  expect(shown.stdout).not.toMatch(/[\u0000-\u0009\u000b-\u001f\u007f-\u009f]/);
  expect(JSON.parse(shown.stdout)).toEqual(body);
  const refusal = { status: 404, code: "room_not_found", detail: "No \u009b room." };
  await using refusing = await standIn(() => problem(refusal));
  const refused = await run(["room", "get", "a", "--json"], refusing);
  expect(refused.stderr).not.toContain("\u009b");
  expect(JSON.parse(refused.stderr)).toMatchObject({ detail: refusal.detail });
});

test("prints the refused request, each invalid field and the remedy", async () => {
  const errors = [
    { field: "room_id", code: "pattern", message: "must match" },
    { field: "ttl_seconds", code: "out_of_range", message: "must be 1 or more" },
  ];
  const full = {
    status: 422,
    code: "validation_failed",
    detail: "2 fields are not valid; see errors.",
    errors,
    hint: "Read the docs.",
  };
  await using service = await standIn(() => problem(full));
  const people = await run(["room", "create", "a"], service);
  expect(people).toEqual({
    status: 1,
    stdout: "",
    stderr: "roomd: 2 fields are not valid:\n  room_id: must match\n  ttl_seconds: must be 1 or more\nRead the docs.\n",
  });
  const programs = await run(["room", "create", "a", "--json"], service);
  expect(programs).toMatchObject({ status: 1, stdout: "" });
  expect(JSON.parse(programs.stderr)).toMatchObject(full);
});

test.each([
  ["a page of another service", () => new Response("<h1>Bad gateway</h1>", { status: 502 }), / 502\b.*\n.*ROOMD_URL/],
  ["a redirect", () => Response.redirect("https://example.org/", 301), / 301\b.*\n.*ROOMD_URL/],
  ["a success without JSON", () => new Response("hello"), / 200\b.*\n.*ROOMD_URL/],
])("is not confused by %s", async (_, answer, expected) => {
  await using service = await standIn(answer);
  const { status, stderr } = await run(["room", "get", "a"], service);
  expect(status).toBe(1);
  expect(stderr).toMatch(expected);
});

test("a service that is not ready prints its failed checks and exits with status 1", async () => {
  const checks = [{ id: "templates", status: "fail", message: "There is no template.", remedy: "Build one." }];
  const how = { status: "unavailable", ready: false, checks };
  await using service = await standIn(() => Response.json(how, { status: 503 }));
  const { env } = service;
  const { ROOMD_API_KEY: _, ...noKey } = env;
  for (const each of [env, noKey]) {
    const { status, stdout, stderr } = await run(["health"], { env: each as Record<string, string> });
    expect([status, stderr]).toEqual([1, ""]);
    expect(stdout).toMatch(
      /^status +unavailable\nready +no\n\nfail {2}templates +There is no template\.\n +Build one\.\n$/,
    );
  }
  expect(JSON.parse((await run(["health", "--json"], service)).stdout)).toEqual(how);
});

test("names the URL and the command that starts a service if the connection is refused", async () => {
  const service = await standIn(() => new Response());
  await service[Symbol.asyncDispose]();
  const { status, stderr } = await run(["room", "list"], service);
  expect(status).toBe(1);
  const detail = `No service answers at ${service.url}.`;
  const hint =
    "Start it with `systemctl start roomd` (without systemd: `roomd serve`), or set ROOMD_URL to its address.";
  expect(stderr).toBe(`roomd: ${detail}\n${hint}\n`);
  const error = JSON.parse((await run(["room", "list", "--json"], service)).stderr);
  expect(error).toEqual({ code: "unreachable", detail, errors: [], hint });
});

test("does not report a broken connection as a missing service", async () => {
  const listener = Bun.listen({
    hostname: "127.0.0.1",
    port: 0,
    socket: { data: (socket) => void socket.terminate() },
  });
  const env = { ROOMD_API_KEY: "k", ROOMD_URL: `http://127.0.0.1:${listener.port}` };
  const { status, stderr } = await run(["room", "destroy", "a"], { env });
  listener.stop(true);
  expect(status).toBe(1);
  expect(stderr).toMatch(new RegExp(`^roomd: .*${env.ROOMD_URL} .*\\n.*ROOMD_URL .*https://`));
});

test("reports a service that does not speak TLS", async () => {
  await using service = await standIn(() => Response.json(ROOMS));
  const url = service.url.replace("http:", "https:");
  const { status, stderr } = await run(["room", "list"], { env: { ...service.env, ROOMD_URL: url } });
  expect(status).toBe(1);
  expect(stderr).toMatch(new RegExp(`^roomd: ${url} .*\\n.*http:// .*ROOMD_URL`));
});

test("retries with the same idempotency key if the response is truncated", async () => {
  const half = new ReadableStream({
    async pull(controller) {
      controller.enqueue("{");
      await Bun.sleep(50);
      controller.error(new Error("gone"));
    },
  });
  const cut = new Response(half, { headers: { "Content-Type": "application/json" } });
  const replies = [cut, Response.json(ROOM, { status: 201 })];
  await using service = await standIn(() => replies.shift() ?? Response.error());
  expect(await run(["room", "create", "a"], service)).toMatchObject({ status: 0, stderr: "" });
  expect(new Set(service.seen.map(({ headers }) => headers.get("idempotency-key"))).size).toBe(1);
  expect(service.seen).toHaveLength(2);
});

test("uses the proxy named in the environment", async () => {
  await using proxy = await standIn(() => Response.json(ROOMS));
  const env = { ...proxy.env, ROOMD_URL: "http://rooms.example.test", HTTP_PROXY: proxy.url };
  expect(await run(["room", "list"], { env })).toMatchObject({ status: 0, stderr: "" });
  expect(proxy.seen[0]?.headers.get("host")).toBe("rooms.example.test");
});

test("requires a key and a valid URL", async () => {
  expect(await run(["room", "list"])).toMatchObject({
    status: 2,
    stderr: expect.stringMatching(/^roomd: ROOMD_API_KEY is not set\.\n.*setup\.env.*\n$/),
  });
  const env = { ROOMD_API_KEY: "k", ROOMD_URL: "rooms.example.org:80" };
  expect(await run(["room", "list"], { env })).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("ROOMD_URL"),
  });
});

test("finds the service by this host's configuration when ROOMD_URL is not set", async () => {
  await using service = await standIn(() => Response.json(ROOMS));
  const env = { ROOMD_API_KEY: "key-test", ROOMD_HTTP_LISTEN: new URL(service.url).host };
  expect(await run(["room", "list"], { env })).toMatchObject({ status: 0, stderr: "" });
});

test("trusts a self-signed service by its file only", async () => {
  using directory = scratch();
  const tls = await loadSelfSigned(join(directory.path, "tls"), []);
  const file = join(directory.path, "tls/cert.pem");
  await using service = await standIn(() => Response.json(ROOMS), tls);
  const { env } = service;
  const distrust = await run(["room", "list"], { env });
  expect(distrust.status).toBe(1);
  expect(distrust.stderr).toMatch(/^roomd: .*https:\S+ .*\n.*ROOMD_CA_CERT.*\n$/);
  for (const name of ["ROOMD_CA_CERT", "NODE_EXTRA_CA_CERTS"]) {
    expect(await run(["room", "list"], { env: { ...env, [name]: file } })).toMatchObject({ status: 0, stderr: "" });
  }
  const local = { ROOMD_HTTP_LISTEN: new URL(service.url).host, ROOMD_TLS_MODE: "self-signed" };
  const onHost = { ...local, ROOMD_API_KEY: "k", ROOMD_DATA_DIR: directory.path };
  expect(await run(["room", "list"], { env: onHost })).toMatchObject({ status: 0, stderr: "" });
  const missing = await run(["room", "list"], { env: { ...env, ROOMD_CA_CERT: "/nowhere" } });
  expect(missing).toMatchObject({ status: 2, stderr: expect.stringContaining("/nowhere") });
});

test("leaves guest_cid and memory to the service if they are not given", async () => {
  const made = {
    agent_id: "w",
    guest_cid: 9103,
    memory_mib: 384,
    state: "running",
    create_wall_ms: 210,
    start_mode: "snapshot",
  };
  await using service = await standIn(({ body }) =>
    (body as { guest_cid?: number }).guest_cid === undefined
      ? Response.json(made, { status: 201 })
      : problem({ status: 409, code: "guest_cid_in_use", detail: "In use.", details: { suggested_guest_cid: 9102 } }),
  );
  const ran = await run(["sandbox", "create", "a", "w"], service);
  expect(ran).toEqual({
    status: 0,
    stdout: expect.stringMatching(/\bw\b.* 210 ms .*snapshot.* 9103.* 384 MiB\n$/),
    stderr: "",
  });
  expect(service.seen.map(({ body }) => body)).toEqual([{ agent_id: "w" }]);
  // A guest_cid of one's own is taken at its word.
  const own = await run(["sandbox", "create", "a", "w", "--cid", "9100", "--memory", "512", "--wait", "none"], service);
  expect(own).toEqual({ status: 1, stdout: "", stderr: "roomd: In use.\n" });
  expect(service.seen.at(-1)?.path).toBe("/v1/rooms/a/sandboxes/from-template?wait=none");
});

test("sends every option of a sandbox, and distinguishes none from absent", async () => {
  await using service = await standIn(() => Response.json({ agent_id: "w", create_wall_ms: null }, { status: 202 }));
  const words = "sandbox create a w --memory 512 --vcpus 2 --template t --env A=1 --label r=b --no-egress".split(" ");
  await run([...words, "--idle-timeout", "5m", "--max-duration", "1d", "--timeout", "500ms"], service);
  expect(service.seen[0]?.path).toContain("wait_timeout_ms=500");
  expect(service.seen[0]?.body).toEqual({
    agent_id: "w",
    memory_mib: 512,
    vcpu_count: 2,
    template_id: "t",
    env: { A: "1" },
    egress_allowlist: [],
    labels: { r: "b" },
    idle_timeout_seconds: 300,
    max_duration_seconds: 86_400,
  });
  await run(["sandbox", "update", "a", "w", "--idle-timeout", "none"], service);
  expect(service.seen[1]).toMatchObject({ method: "PATCH", body: { idle_timeout_seconds: null } });
});

test("names from a guest cannot control the terminal", async () => {
  const name = "/evil\u001b]52;c;aGk=\u0007\nfake\u202etxt";
  const item = { path: name, name, type: "file", size_bytes: 1, mode: "0644", modified_at: "t" };
  await using service = await standIn(() => Response.json({ path: "/", items: [item], next_cursor: null }));
  const { stdout } = await run(["drive", "ls", "a"], service);
  expect(stdout).toContain("/evil\\x1b]52;c;aGk=\\x07\\x0afake\\u{202e}txt\n");
  expect(JSON.parse((await run(["drive", "ls", "a", "--json"], service)).stdout).items[0].path).toBe(name);
});

test("on a terminal: colours, and progress for calls that take over a second", async () => {
  await using service = await standIn(async ({ method }) => {
    if (method === "DELETE") await Bun.sleep(1500);
    return Response.json({ ...ROOMS, agent_id: "w", state: "destroyed", guest_cid: 9100 });
  });
  const quick = await runOnTerminal(["room", "list"], service.env);
  expect(quick.screen).toContain("\u001b[32mactive");
  expect(quick.screen).not.toContain("\r\u001b[K");
  const plain = await runOnTerminal(["room", "list"], { ...service.env, NO_COLOR: "1" });
  expect(plain.screen).not.toContain("\u001b[");
  const destroy = (...options: string[]) => runOnTerminal(["sandbox", "destroy", "a", "w", ...options], service.env);
  const [slow, ...silent] = await Promise.all([destroy(), destroy("--json"), destroy("--quiet")]);
  for (const { screen } of silent) expect(screen).not.toContain("\r\u001b[K");
  expect(slow.screen).toMatch(/ w … 1 s/);
  const piped = await run(["sandbox", "destroy", "a", "w"], service);
  expect(slow.screen.trimEnd().endsWith(`\r\u001b[K${piped.stdout.trimEnd()}`)).toBe(true);
  expect(piped).toEqual({ status: 0, stdout: expect.stringMatching(/ w .* 9100 .*\n$/), stderr: "" });
  expect(await run(["sandbox", "delete", "a", "w"], service)).toEqual(piped);
});

test("on a terminal: every call names its wait, and a wait of several calls is shown as one", async () => {
  const message = { message_id: "m", source: "w", payload: "at last" };
  let polls = 0;
  await using service = await standIn(async ({ method, path }) => {
    if (method === "POST") return Response.json({ ...message, state: "acked" });
    await Bun.sleep(1200);
    if (path.includes("/ports")) return Response.json({ items: [], next_cursor: null });
    return Response.json({ items: ++polls === 1 ? [] : [message], next_cursor: null });
  });
  const [listed, waited] = await Promise.all([
    runOnTerminal(["port", "list", "a", "w"], service.env),
    runOnTerminal(["wait", "a", "operator"], service.env),
  ]);
  const seen = (screen: string) => screen.replaceAll("\r\u001b[K", "|");
  expect(seen(listed.screen)).toMatch(/\|[^|]+ … \d+ s\|/);
  // Its elapsed time continues across calls.
  expect(seen(waited.screen)).toMatch(/\|[^|]*operator … ([2-9]|\d\d+) s\|w m at last\r?\n/);
});

test("audit of a room and of the organization, and its verification", async () => {
  await using service = await standIn(({ path }) =>
    path.endsWith("/verify")
      ? Response.json({ ok: false, from_seq: 1, to_seq: 9, broken_at: 4 })
      : Response.json({ items: [], next_cursor: null }),
  );
  await run(["audit", "a", "--event", "exec.", "--agent", "w", "--order", "asc"], service);
  await run(["audit", "--org", "--limit", "5"], service);
  const broken = await run(["audit", "verify"], service);
  expect(broken).toEqual({ status: 1, stdout: expect.stringMatching(/ 4\n$/), stderr: "" });
  expect(service.seen.map(({ path }) => path)).toEqual([
    "/v1/rooms/a/audit?agent_id=w&event=exec.&order=asc",
    "/v1/orgs/self/audit?limit=5",
    "/v1/orgs/self/audit/verify",
  ]);
});

test("audit summary, export and follow", async () => {
  const record = { seq: 8, at: "2026-01-01T00:00:00.000Z", event: "room.read", outcome: "success", room_id: "a" };
  const full = { ...record, agent_id: null, actor: { type: "key", id: "kid_1", name: "me" }, error_code: null };
  const lines = (...values: unknown[]) => new Response(values.map((value) => `${JSON.stringify(value)}\n`).join(""));
  await using service = await standIn(({ path }) => {
    if (path.includes("/summary")) return Response.json({ total: 1, text: "Room a: 1 record." });
    if (path.includes("/events")) return lines({ type: "ping" }, full, { type: "error", code: "invalid_api_key" });
    return lines({ seq: 1 }, { seq: 2 });
  });
  expect((await run(["audit", "summary", "a", "--agent", "w"], service)).stdout).toBe("Room a: 1 record.\n");
  expect(await run(["audit", "export", "--org", "--event", "exec."], service)).toMatchObject({
    status: 0,
    stdout: '{"seq":1}\n{"seq":2}\n',
  });
  const followed = await run(["audit", "follow", "a", "--after", "7"], service);
  expect(followed.stdout).toBe("8 2026-01-01T00:00:00.000Z room.read success a by me\n");
  expect([followed.status, followed.stderr]).toEqual([1, expect.stringContaining("invalid_api_key")]);
  expect((await run(["audit", "follow", "--org", "--after", "MQ.tag", "--no-follow"], service)).stdout).toBe(
    followed.stdout,
  );
  expect(service.seen.map(({ path }) => path)).toEqual([
    "/v1/rooms/a/audit/summary?agent_id=w",
    "/v1/orgs/self/audit?order=asc&event=exec.",
    "/v1/rooms/a/events?after=7",
    "/v1/orgs/self/events?after=MQ.tag&follow=false",
  ]);
  expect(service.seen[1]?.headers.get("accept")).toBe("application/x-ndjson");
});

test("the effective configuration, its errors, and the daemon's refusal of foreign code", async () => {
  using directory = scratch();
  const file = join(directory.path, "config.toml");
  writeFileSync(file, 'http.listen = "127.0.0.1:9080"\n');
  const shown = await run(["config", "--config", file, "--json"], {
    env: { ROOMD_DATA_DIR: "/srv/b", ROOMD_DRIVE_RETENTION: "90" },
  });
  expect(JSON.parse(shown.stdout)).toMatchObject({
    file,
    config: { "http.listen": "127.0.0.1:9080", data_dir: "/srv/b", "drive.retention": 90 },
    origins: { "http.listen": file, data_dir: "ROOMD_DATA_DIR" },
  });
  const cases: [Record<string, string>, RegExp][] = [
    [{ ROOMD_HTTP_LISTEN: "0.0.0.0:8080" }, /http\.insecure = true/],
    [{ ROOMD_TLS_MODE: "sometimes" }, /tls\.mode = "sometimes" \(ROOMD_TLS_MODE\)/],
    [{ ROOMD_RUNTIME_DIR: `/run/${"x".repeat(100)}` }, /too long/],
    [{ ROOMD_DRIVE_RETENTION: "500ms" }, /"24h" .*"7d"/],
    [{ BUN_OPTIONS: "--smol" }, /env -u BUN_OPTIONS roomd serve/],
  ];
  for (const [env, expected] of cases) {
    const { status, stderr } = await run(["serve"], { env });
    expect(stderr).toMatch(expected);
    expect(status).toBe(2);
  }
});
