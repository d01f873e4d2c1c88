/**
 * Templates built by organizations, as far as possible without a guest: refusals, visibility, the queue, the stream, and that nothing
 * remains of a build that was cancelled or whose daemon was killed. The registry accepts connections and never responds. Whole builds:
 * test/vm/templates/images.test.ts.
 */
import { spawn } from "node:child_process";
import { mkdirSync, readdirSync, readFileSync, renameSync, writeFileSync } from "node:fs";
import { createServer, type Server, type Socket } from "node:net";
import { dirname, join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { RESTARTED } from "../../../daemon/domain/templates/builds/queue.ts";
import { connectMcp } from "../../harness/clients/mcp-client.ts";
import { BINARY, type Json, TestDaemon } from "../../harness/daemon.ts";
import { readStream } from "../../harness/event-loop/streams.ts";
import { until } from "../../harness/guests.ts";
import { describeTemplate } from "./described-template.ts";

const SECRET = "a-secret-of-the-build";
const TEMPLATES = "/v1/templates";
const MIB = 1024 ** 2;

let registry: Server;
let host: string;
const connections = new Set<Socket>();
let daemon: TestDaemon;
let other: { authorization: string };
let otherId: string;

beforeAll(async () => {
  registry = createServer((socket) => {
    connections.add(socket);
    socket.on("error", () => {});
    // The end of a connection is only reported if its data is read.
    socket.resume();
    socket.on("close", () => connections.delete(socket));
  });
  await new Promise<void>((listening) => registry.listen(0, "127.0.0.1", listening));
  host = `127.0.0.1:${(registry.address() as { port: number }).port}`;
  daemon = await TestDaemon.start({
    env: {
      ...{ ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0", ROOMD_LIMITS_ORG_TEMPLATES: "4" },
      ROOMD_TEMPLATE_REGISTRIES: `${host}, registry.example.com`,
      ...{ ROOMD_PLANS_FREE_TEMPLATE_MIB_SOFT_CAP: "2", ROOMD_PLANS_FREE_TEMPLATE_MIB_HARD_CAP: "4" },
      ROOMD_RECONCILE_INTERVAL: "1s",
    },
  });
  describeTemplate(daemon);
  const made = await daemon.api(
    "POST",
    "/v1/orgs",
    { name: "other" },
    { authorization: `Bearer ${daemon.operatorKey}` },
  );
  other = { authorization: `Bearer ${made.body.api_key}` };
  otherId = made.body.org_id;
});
afterAll(async () => {
  await daemon?.stop();
  for (const socket of connections) socket.destroy();
  registry?.close();
});

const image = () => ({ image: `docker://${host}/app:1` });
const buildPath = ({ template_id, build_id }: Json) => `${TEMPLATES}/${template_id}/builds/${build_id}`;

async function ask(template_id: string, more: object = {}, headers = {}): Promise<Json> {
  const { status, body } = await daemon.api("POST", TEMPLATES, { template_id, from: image(), ...more }, headers);
  expect([status, body]).toMatchObject([202, { template_id, state: "queued" }]);
  return body;
}

/** Programs of a build that run. */
function left(): string[] {
  return readdirSync("/proc").filter((pid) => {
    try {
      return /^\d+$/.test(pid) && readFileSync(`/proc/${pid}/cmdline`, "utf8").includes(host);
    } catch {
      return false;
    }
  });
}

/** A template as a build leaves it: owned by the organization, of `mib` MiB. */
function own(orgId: string, templateId: string, mib = 0): void {
  const made = join(daemon.home, "made");
  describeTemplate({ dataDir: made }, templateId);
  const from = join(made, "templates", templateId);
  writeFileSync(join(from, "current", "memory"), new Uint8Array(mib * MIB).fill(1));
  const to = join(daemon.dataDir, "org-templates", orgId, templateId);
  mkdirSync(dirname(to), { recursive: true });
  renameSync(from, to);
}

test("an invalid build is refused with all errors before anything is fetched", async () => {
  const refused = async (body: object) => {
    const answer = await daemon.api("POST", TEMPLATES, { template_id: "t", ...body });
    return [answer.status, answer.body.code, answer.body.errors.map(({ field }: Json) => field)];
  };
  expect(await refused({ from: {} })).toEqual([422, "validation_failed", ["from"]]);
  expect(await refused({ from: { ...image(), dockerfile: "FROM x" } })).toEqual([422, "conflicting_fields", ["from"]]);
  expect(await refused({ from: { image: "docker://registry.example.org/x" } })).toEqual([
    ...[422, "image_unauthorized", ["from.image"]],
  ]);
  for (const of of ["docker://app:1", "docker://team/app:1"])
    expect(await refused({ from: { image: of } })).toEqual([422, "validation_failed", ["from.image"]]);
  // Files on the host belong to no organization.
  for (const of of ["oci:/etc", "docker-archive:/etc/shadow"]) {
    expect(await refused({ from: { image: of } })).toEqual([422, "validation_failed", ["from.image"]]);
    const dockerfile = `FROM ${of}`;
    expect(await refused({ from: { dockerfile } })).toEqual([422, "validation_failed", ["from.dockerfile"]]);
  }
  expect(await refused({ from: { dockerfile: `FROM ${host}/app\nRUN --mount=type=ssh true` } })).toEqual([
    ...[422, "validation_failed", ["from.dockerfile"]],
  ]);
  // A bare name is a template of packages, or no image of a registry.
  expect((await refused({ from: { dockerfile: "FROM default" }, ready: "true" }))[2]).toEqual(["ready"]);
  expect((await refused({ from: { dockerfile: "FROM none" }, ready: "true" }))[2]).toEqual([
    "from.dockerfile",
    "ready",
  ]);
  const sent = { dockerfile: `FROM ${host}/app`, context: "no base64!" };
  expect(await refused({ from: sent })).toEqual([422, "validation_failed", ["from.context"]]);
  const several = { from: image(), ready: "true", egress_allowlist: ["no such thing"], min_memory_mib: 300 };
  const [status, code, fields] = await refused(several);
  expect([status, code]).toEqual([422, "validation_failed"]);
  expect(fields).toEqual(
    expect.arrayContaining(["ready", "egress_allowlist", "egress_allowlist[0]", "min_memory_mib"]),
  );
  expect(await refused({ template_id: "../t", from: image() })).toEqual([422, "validation_failed", ["template_id"]]);
  expect(connections.size).toBe(0);
});

test("a build is followed, cancelled, and visible to its organization only", async () => {
  const build = await ask("slow", { secrets: { token: SECRET }, registry_auth: '{"auths":{}}' });
  const path = buildPath(build);
  await until("a connection to the registry is open", () => connections.size > 0);
  const pulling = async () => (await daemon.ok("GET", path)).state === "pulling";
  await until("the stream shows the state pulling", pulling);
  expect(await daemon.ok("GET", path)).toMatchObject({ state: "pulling", finished_at: null, failure: null });
  for (const of of [path, `${path}/stream`]) expect((await daemon.api("GET", of, undefined, other)).status).toBe(404);
  expect((await daemon.api("DELETE", path, undefined, other)).status).toBe(404);

  // Another reader resumes at the first one's position.
  const first = await readStream(daemon, path, { onEvent: ({ type }) => type !== "state" });
  expect(first.events.map(({ seq, type }: Json) => [seq, type])).toEqual([
    [0, "started"],
    [1, "state"],
  ]);
  const rest = readStream(daemon, path, { after: first.last });
  const ended = await daemon.ok("DELETE", path);
  expect(ended).toMatchObject({ state: "failed", failure: { code: "build_failed" } });
  const { events } = await rest;
  expect(events.at(-1)).toMatchObject({ type: "exit", exit_code: 1, state: "failed", seq: ended.last_seq });
  expect(events.map(({ seq }: Json) => seq)).toEqual(events.map((_: Json, n: number) => n + 2));
  expect(left()).toEqual([]);
  expect(readdirSync(join(daemon.dataDir, "org-templates", daemon.orgId, "slow"))).toEqual([]);
  expect(await daemon.ok("DELETE", path)).toEqual(ended);

  // A failed build is metered too, for the key that requested it.
  const { totals, groups } = await daemon.ok("GET", "/v1/orgs/self/usage?group_by=key");
  expect(totals.build_seconds).toBeGreaterThan(0);
  expect(groups).toMatchObject([
    { id: expect.stringMatching(/^kid_/), totals: { build_seconds: totals.build_seconds } },
  ]);

  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?order=desc&limit=50");
  const events_ = items.map(({ event, outcome }: Json) => `${event} ${outcome}`);
  expect(events_).toEqual(
    expect.arrayContaining(["template.build_asked success", "template.built error", "template.build_ended success"]),
  );
  expect(JSON.stringify(items)).not.toContain(SECRET);
});

test("builds and templates per organization are limited, and a name has one build at a time", async () => {
  const first = await ask("one");
  const again = await daemon.api("POST", TEMPLATES, { template_id: "one", from: image() });
  expect([again.status, again.body.code, again.body.details.build_id]).toEqual([409, "already_exists", first.build_id]);
  const others = [await ask("two"), await ask("three")];
  const more = await daemon.api("POST", TEMPLATES, { template_id: "four", from: image() });
  expect([more.status, more.body.code]).toEqual([429, "quota_exceeded"]);
  // Another organization has its turn.
  const { body: theirs } = await daemon.api("POST", TEMPLATES, { template_id: "one", from: image() }, other);
  expect(theirs.state).toBe("queued");
  for (const build of [...others, first]) await daemon.ok("DELETE", buildPath(build));
  const path = buildPath(theirs);
  await until(
    "the build of the other organization is pulling",
    async () => (await daemon.api("GET", path, undefined, other)).body.state === "pulling",
  );
  await daemon.api("DELETE", path, undefined, other);
  expect(left()).toEqual([]);

  for (const templateId of ["a", "b", "c", "d"]) own(daemon.orgId, templateId);
  const full = await daemon.api("POST", TEMPLATES, { template_id: "e", from: image() });
  expect([full.status, full.body.code, full.body.details.cap]).toEqual([429, "quota_exceeded", 4]);
  for (const templateId of ["a", "b", "c", "d"]) {
    expect(await daemon.ok("DELETE", `${TEMPLATES}/${templateId}`)).toEqual({
      template_id: templateId,
      state: "removed",
    });
  }
});

describe("the disk usage of templates", () => {
  const ofOther = (method: string, path: string, body?: object) => daemon.api(method, path, body, other);
  const askOther = (template_id: string) => ofOther("POST", TEMPLATES, { template_id, from: image() });
  const standing = async () => (await ofOther("GET", "/v1/orgs/self/usage")).body;

  test("is reported, warned about above the soft cap, and blocks builds above the hard cap until one is removed", async () => {
    expect((await standing()).template_mib).toEqual({ used: 0, soft_cap: 2, hard_cap: 4 });
    // Its manifest takes something too.
    own(otherId, "a", 1);
    expect((await standing()).template_mib.used).toBe(2);
    const response = await askOther("x");
    expect([response.status, response.body.warnings]).toEqual([202, undefined]);
    await ofOther("DELETE", buildPath(response.body));
    own(otherId, "b", 1);
    const { template_mib, warnings } = await standing();
    expect([template_mib.used, warnings]).toEqual([3, [expect.stringContaining("3 MiB")]]);
    const warned = await askOther("x");
    expect([warned.status, warned.body.warnings]).toEqual([202, warnings]);
    await ofOther("DELETE", buildPath(warned.body));

    own(otherId, "c", 2);
    const refused = async () => {
      const { status, body } = await askOther("x");
      return [status, body.code, body.details];
    };
    const full = [429, "quota_exceeded", { limit: "template_mib", used: 5, cap: 4 }];
    expect(await refused()).toEqual(full);
    await daemon.restart("SIGKILL");
    expect(await refused()).toEqual(full);
    expect((await standing()).template_mib.used).toBe(5);
    for (const name of ["a", "b", "c"]) expect((await ofOther("DELETE", `${TEMPLATES}/${name}`)).status).toBe(200);
    expect((await standing()).template_mib.used).toBe(0);
  });

  test("cancels a build that cannot fit, without leftovers", async () => {
    const { body } = await askOther("grows");
    const home = join(daemon.dataDir, "org-templates", otherId, "grows");
    await until("a connection to the registry is open", () => connections.size > 0);
    const [version = ""] = readdirSync(home);
    writeFileSync(join(home, version, "root.qcow2"), new Uint8Array(6 * MIB).fill(1));
    const path = buildPath(body);
    await until("the build is finished", async () => (await ofOther("GET", path)).body.finished_at !== null);
    expect((await ofOther("GET", path)).body).toMatchObject({
      state: "failed",
      failure: { code: "quota_exceeded", details: { limit: "template_mib", used: 6, cap: 4 } },
    });
    expect([readdirSync(home), left()]).toEqual([[], []]);
    expect((await standing()).template_mib.used).toBe(0);
  });

  test("is checked again before a queued build starts, and crossing the soft cap is audited", async () => {
    own(otherId, "waits", 0);
    const [first, waits] = [await askOther("first"), await askOther("waits")];
    expect([first.status, waits.status]).toEqual([202, 202]);
    await until("a connection to the registry is open", () => connections.size > 0);
    own(otherId, "large", 4);
    await ofOther("DELETE", buildPath(first.body));
    const path = buildPath(waits.body);
    await until("the build is finished", async () => (await ofOther("GET", path)).body.finished_at !== null);
    expect((await ofOther("GET", path)).body).toMatchObject({
      state: "failed",
      failure: { code: "quota_exceeded", details: { limit: "template_mib", used: 5, cap: 4 } },
    });
    await until("no connection to the registry is open", () => connections.size === 0);
    const home = join(daemon.dataDir, "org-templates", otherId, "waits");
    expect(readdirSync(home)).toHaveLength(2);
    expect(readdirSync(join(daemon.dataDir, "trials"))).toEqual([]);
    expect((await ofOther("GET", `${TEMPLATES}/waits`)).body).toMatchObject({ visibility: "org" });
    const { items } = (await ofOther("GET", "/v1/orgs/self/audit?event=quota.soft_exceeded")).body;
    expect(items.map(({ details }: Json) => details)).toEqual([{ limit: "template_mib", used: 5, cap: 2 }]);
    for (const name of ["large", "waits"]) await ofOther("DELETE", `${TEMPLATES}/${name}`);
  });
});

test("a repeated call starts one build", async () => {
  const headers = { "idempotency-key": "once" };
  const [one, two] = [await ask("twice", {}, headers), await ask("twice", {}, headers)];
  expect(two).toEqual(one);
  await daemon.ok("DELETE", buildPath(one));
});

test("a model starts a build, and follows it with the returned calls until its end", async () => {
  const client = await connectMcp(daemon, { tools: "all" });
  const of = { template_id: "of-a-model", idempotency_key: "of-a-model" };
  const call = () => client.call("template_build", { ...of, from: image(), wait_ms: 500 });
  let started = await call();
  await until("the image is being pulled", async () => {
    started = await call();
    return started.result.state === "pulling" && started.result.told.length > 0;
  });
  const { build_id, next } = started.result;
  expect(started.result).toMatchObject({ told: [expect.stringContaining("fetching docker://")] });
  expect(next).toEqual({ tool: "template_build", arguments: { template_id: "of-a-model", build_id, after: 2 } });
  const again = await call();
  expect(again.result).toMatchObject({ build_id });
  const waiting = client.call(next.tool, next.arguments);
  await daemon.ok("DELETE", buildPath(started.result));
  const ended = await waiting;
  expect(ended.result).toMatchObject({ build_id, state: "failed", failure: { code: "build_failed" } });
  expect(ended.result.next).toBeUndefined();
  await client.close();
});

test("an organization's own template takes precedence over the host's, for it alone", async () => {
  own(daemon.orgId, "default");
  const seen = async (headers = {}) => {
    const { body } = await daemon.api("GET", TEMPLATES, undefined, headers);
    return body.items.map(({ template_id, visibility }: Json) => [template_id, visibility]);
  };
  expect(await seen()).toEqual([["default", "org"]]);
  expect(await seen(other)).toEqual([["default", "host"]]);
  const { templates } = await daemon.ok("GET", "/v1/config");
  expect(templates).toMatchObject([{ visibility: "org" }]);
  expect((await daemon.api("DELETE", `${TEMPLATES}/default`, undefined, other)).status).toBe(404);
  await daemon.ok("DELETE", `${TEMPLATES}/default`);
  expect(await seen()).toEqual([["default", "host"]]);
  // The host's template cannot be removed with a key.
  const answer = await daemon.api("DELETE", `${TEMPLATES}/default`);
  expect([answer.status, answer.body.code]).toEqual([404, "template_not_found"]);
  for (const name of ["..", "%2e%2e", "."]) {
    expect((await daemon.api("DELETE", `${TEMPLATES}/${name}`)).status).toBeGreaterThanOrEqual(400);
  }
  expect(readdirSync(join(daemon.dataDir, "templates"))).toContain("default");
});

test("a key without the scope, or a bound key, cannot build", async () => {
  const make = async (more: object) =>
    (await daemon.ok("POST", "/v1/orgs/self/keys", { name: "k", ...more })).key as string;
  await daemon.room("bound");
  const lesser = await make({ scopes: ["sandboxes:read", "sandboxes:write"] });
  const bound = await make({ scopes: ["templates:write"], room_ids: ["bound"] });
  for (const key of [lesser, bound]) {
    const headers = { authorization: `Bearer ${key}` };
    const { status, body } = await daemon.api("POST", TEMPLATES, { template_id: "t", from: image() }, headers);
    expect([status, body.code]).toEqual([403, "insufficient_scope"]);
  }
});

test("the command uses no CPU while it waits for a build", async () => {
  const argv = ["template", "import", "waited-for", `docker://${host}/app:1`, "--json"];
  const child = spawn(BINARY, argv, { env: daemon.env, stdio: "ignore" });
  const ended = new Promise((done) => child.once("exit", done));
  await until("a connection to the registry is open", () => connections.size > 0);
  /** Of the processor, in hundredths of a second. */
  const used = () => {
    const stat = readFileSync(`/proc/${child.pid}/stat`, "utf8");
    const [user, system] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13);
    return Number(user) + Number(system);
  };
  const before = used();
  await Bun.sleep(1000); // the test checks that no work is done in this time
  const spent = used() - before;
  child.kill("SIGINT");
  await ended;
  expect(spent).toBeLessThan(30);
});

test.each([
  ["SIGINT", 130],
  ["SIGTERM", 130],
  ["SIGKILL", null],
] as const)("a build on the host that is ended by %s leaves nothing", async (signal, status) => {
  const argv = ["template", "import", "given-up", `docker://${host}/app:1`, "--json"];
  const child = spawn(BINARY, argv, { env: daemon.env, stdio: ["ignore", "ignore", "pipe"] });
  const ended = new Promise<number | null>((done) => child.once("exit", (code) => done(code)));
  await until("a connection to the registry is open", () => connections.size > 0);
  child.kill(signal);
  expect(await ended).toBe(status);
  // On a signal that it handles, the build exits only after its cleanup; after SIGKILL its processes exit automatically, and the daemon
  // sweeps.
  await until("the build's programs have exited", () => left().length === 0);
  await until("the build's files are removed", () => readdirSync(join(daemon.dataDir, "trials")).length === 0);
  if (status !== null) expect(readdirSync(join(daemon.dataDir, "templates", "given-up"))).toEqual([]);
  await until("the build's connections are closed", () => connections.size === 0);
});

test("a kill of the daemon fails its builds, without leftovers", async () => {
  const builds = [await ask("cut"), await ask("waits")];
  await until("a connection to the registry is open", () => connections.size > 0);
  await daemon.restart("SIGKILL");
  await until("the build's programs have exited", () => left().length === 0);
  for (const build of builds) {
    const { failure, state } = await daemon.ok("GET", buildPath(build));
    expect([state, failure.detail]).toEqual(["failed", RESTARTED.detail]);
    const { events } = await readStream(daemon, buildPath(build));
    expect(events.at(-1)).toMatchObject({ type: "exit", state: "failed" });
  }
  await until("the build's files are removed", () => readdirSync(join(daemon.dataDir, "trials")).length === 0);
});

test("a stop of the daemon asks followers to reconnect, and running builds fail", async () => {
  const [current, waits] = [await ask("under-way"), await ask("waiting")];
  await until("a connection to the registry is open", () => connections.size > 0);
  let startedCount = 0;
  const onEvent = ({ type }: Json) => {
    if (type === "started") startedCount++;
    return undefined;
  };
  const followed = [current, waits].map((build) => readStream(daemon, buildPath(build), { onEvent }));
  await until("both streams are open", () => startedCount === 2);
  await daemon.restart("SIGTERM");
  for (const { events } of await Promise.all(followed))
    expect(events.at(-1)).toMatchObject({ type: "error", code: "shutting_down", retryable: true });
  for (const build of [current, waits])
    expect(await daemon.ok("GET", buildPath(build))).toMatchObject({
      state: "failed",
      failure: { code: "build_failed" },
    });
  expect(left()).toEqual([]);
});
