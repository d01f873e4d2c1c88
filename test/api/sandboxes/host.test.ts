/** Which host this is: made up once, kept with its data, in the records of rooms, and in every answer through every door. */
import { Database } from "bun:sqlite";
import { readFileSync, renameSync, rmSync } from "node:fs";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { bare, bearer, overSocket } from "../calls.ts";

const daemons: TestDaemon[] = [];
async function start(env: Record<string, string> = {}): Promise<TestDaemon> {
  const daemon = await TestDaemon.start({ env });
  daemons.push(daemon);
  return daemon;
}
afterEach(async () => {
  for (const daemon of daemons.splice(0)) await daemon.stop();
});

/** Of a service of several no host takes another name. */
const ALONE = { ROOMD_CLUSTER_URL: "" };
const HOST = "x-roomd-host";
const MADE_UP = /^host-[a-z2-7]{12}$/;
const fileOf = ({ dataDir }: TestDaemon) => readFileSync(join(dataDir, "host_id"), "utf8").trimEnd();
const hostOf = async (daemon: TestDaemon) => (await daemon.api("GET", "/v1/me")).headers.get(HOST);
const roomOf = (daemon: TestDaemon, name: string): Promise<Json> => daemon.ok("GET", `/v1/rooms/${name}`);

test("a host is named once, and its rooms have that name", async () => {
  const daemon = await start();
  const name = await hostOf(daemon);
  expect(name).toMatch(MADE_UP);
  expect(fileOf(daemon)).toBe(name);
  expect((await daemon.room("one")).host).toBe(name);
  await daemon.restart("SIGKILL");
  expect(await hostOf(daemon)).toBe(name);
  expect((await roomOf(daemon, "one")).host).toBe(name);
  expect((await daemon.ok("GET", "/v1/rooms")).items).toMatchObject([{ room_id: "one", host: name }]);
  const other = await start();
  expect(await hostOf(other)).not.toBe(name);
});

test("rooms in a database from before host names existed belong to this host", async () => {
  const daemon = await start(ALONE);
  for (const name of ["live", "ended"]) await daemon.room(name);
  await daemon.ok("DELETE", "/v1/rooms/ended");
  const before = await roomOf(daemon, "live");
  await daemon.end("SIGTERM");
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("UPDATE rooms SET host_id = 'host-1'");
  rmSync(join(daemon.dataDir, "host_id"));
  await daemon.serve();
  const name = fileOf(daemon);
  expect(name).toMatch(MADE_UP);
  expect(await roomOf(daemon, "live")).toEqual({ ...before, host: name });
  expect(rows.query("SELECT DISTINCT host_id FROM rooms").all()).toEqual([{ host_id: name }]);
  rows.close();
});

test("a backup contains the name, and restored rooms belong to the host that restores it", async () => {
  const daemon = await start(ALONE);
  await daemon.room("kept");
  const name = await hostOf(daemon);
  const archive = join(daemon.home, "backup.tar");
  expect((await daemon.cli(["backup", archive])).stderr).toBe("");
  await daemon.end("SIGTERM");
  renameSync(daemon.dataDir, `${daemon.dataDir}-before`);
  expect((await daemon.cli(["restore", archive])).status).toBe(0);
  await daemon.serve();
  expect([await hostOf(daemon), (await roomOf(daemon, "kept")).host]).toEqual([name, name]);
  await daemon.end("SIGTERM");
  daemon.env.ROOMD_HOST_ID = "spare";
  await daemon.serve();
  expect([await hostOf(daemon), (await roomOf(daemon, "kept")).host]).toEqual(["spare", "spare"]);
});

test("the operator may set the name, and an invalid one is refused", async () => {
  const daemon = await start({ ROOMD_HOST_ID: "rack-3" });
  expect(await hostOf(daemon)).toBe("rack-3");
  expect((await daemon.room("one")).host).toBe("rack-3");
  const refused = await daemon.cli(["serve"], undefined, {
    ROOMD_HOST_ID: "rack 3",
    ROOMD_DATA_DIR: join(daemon.home, "data-2"),
    ROOMD_RUNTIME_DIR: join(daemon.home, "run-2"),
  });
  expect(refused.status).not.toBe(0);
  expect(refused.stderr).toContain('host_id = "rack 3"');
});

test("every answer names the host that gave it, through every door", async () => {
  const daemon = await start({ ROOMD_PORTS_DOMAIN: "ports.example" });
  const name = fileOf(daemon);
  await daemon.room("r");
  const key = bearer(daemon.apiKey);
  const json = { ...key, "content-type": "application/json" };
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list" });
  const requests: [string, string, Record<string, string>?, string?][] = [
    ["GET", "/health"],
    ["HEAD", "/health"],
    ["GET", "/metrics"],
    ["GET", "/docs"],
    ["GET", "/v1/openapi.json"],
    ["GET", "/v1/me", key],
    ["GET", "/v1/me"],
    ["GET", "/v1/rooms/none", key],
    ["GET", "/v1/nothing", key],
    ["GET", "/nothing"],
    ["PUT", "/v1/me", key],
    ["POST", "/v1/rooms", json, "{"],
    ["GET", "/v1/rooms/r/events?after=0&follow=false", key],
    ["GET", "/v1/rooms/r/audit", { ...key, accept: "application/x-ndjson" }],
    ["PUT", "/v1/rooms/r/drive/files/a", key, "bytes"],
    ["GET", "/v1/rooms/r/drive/files/a", key],
    ["POST", "/mcp", { ...json, accept: "application/json, text/event-stream" }, list],
    ["POST", "/mcp", json, "{"],
    ["DELETE", "/mcp", key],
    ["GET", "/mcp", key],
    ["GET", "/mcp"],
    ["GET", "/p/nothing/"],
  ];
  for (const [method, path, headers, body] of requests) {
    const answer = await bare(daemon, method, path, headers, body);
    expect([method, path, answer.status, answer.headers.get(HOST)]).toEqual([method, path, answer.status, name]);
  }
  const close = "Connection: close\r\n\r\n";
  for (const head of ["Host: nothing.ports.example\r\n", "Host: a\r\nHost: b\r\n"]) {
    const answer = await overSocket(daemon, `GET /v1/me HTTP/1.1\r\n${head}${close}`);
    expect(answer).toMatch(/^HTTP\/1\.1 4\d\d /);
    expect(answer.toLowerCase()).toContain(`\r\n${HOST}: ${name}\r\n`);
  }
});
