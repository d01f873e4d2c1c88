/**
 * A sandbox's connections as clients read them: after it has stopped, across a restart, and access control. Connections of guests are in
 * test/unit/domain/egress.
 */
import { Database } from "bun:sqlite";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { connectMcp } from "../../harness/clients/mcp-client.ts";
import { type Json, NO_GUESTS, TestDaemon } from "../../harness/daemon.ts";
import { untilState } from "../../harness/guests.ts";
import { bearer, makeKey, makeOrg, run } from "../calls.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "./described-template.ts";

const directory = mkdtempSync(join(tmpdir(), "roomd-network-"));
const hosts = join(directory, "hosts");
writeFileSync(hosts, "10.1.0.9 internal.example\n");

let daemon: TestDaemon;
let sandbox: Json;
const PLACE = "/v1/rooms/r/sandboxes";
const MANY = 250;

/** Rows as a guest would have left them: `MANY` of each kind, each a second later than the previous one. */
function leave(): void {
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  rows.run("PRAGMA busy_timeout = 5000");
  const insert = rows.prepare(
    "INSERT INTO egress_destinations VALUES (?, ?, ?, ?, ?, 443, ?, 3, 5, 7, '2026-01-31T12:00:00.000Z', ?)",
  );
  rows.transaction(() => {
    for (let slot = 0; slot < MANY; slot++) {
      const at = new Date(Date.parse("2026-01-31T13:00:00.000Z") + slot * 1000).toISOString();
      insert.run(sandbox.sandbox_id, 1, slot, `allowed-${slot}.example`, "192.0.2.7", null, at);
      insert.run(sandbox.sandbox_id, 0, slot, `refused-${slot}.example`, null, "not_listed", at);
    }
    rows.run("INSERT INTO egress_networks VALUES (?, '2026-01-31T12:00:00.000Z', 1, 2)", [sandbox.sandbox_id]);
  })();
  rows.close();
}

beforeAll(async () => {
  daemon = await TestDaemon.start({
    env: {
      ...NO_GUESTS,
      ...{ ROOMD_EGRESS_PRIVATE_RANGES: "10.1.0.0/16", ROOMD_EGRESS_HOSTS_FILE: hosts },
    },
  });
  describeTemplate(daemon);
  await daemon.room("r");
  // It fails, for want of a QEMU, and leaves its row.
  const body = { agent_id: "worker", guest_cid: 9100, memory_mib: DESCRIBED_MIN_MIB };
  await daemon.api("POST", `${PLACE}/from-template`, body);
  sandbox = await untilState(daemon, "r", "worker", "failed");
});
afterAll(async () => {
  await daemon.stop();
  rmSync(directory, { recursive: true, force: true });
});

test("a sandbox without connections has an empty list, since its creation", async () => {
  expect(await daemon.ok("GET", `${PLACE}/worker/network`)).toEqual({
    ...{ sandbox_id: sandbox.sandbox_id, agent_id: "worker", since: sandbox.created_at },
    ...{ items: [], other: { allowed: 0, refused: 0 } },
  });
});

test("all connections are listed, newest first, after a kill and the sandbox's end, by both its names", async () => {
  leave();
  const seen = await daemon.ok("GET", `${PLACE}/worker/network`);
  expect(seen.items).toHaveLength(2 * MANY);
  expect(seen).toMatchObject({ since: "2026-01-31T12:00:00.000Z", other: { allowed: 1, refused: 2 } });
  const moments: string[] = seen.items.map((each: Json) => each.last_at);
  expect(moments).toEqual(moments.toSorted().reverse());
  expect(seen.items.find((each: Json) => each.host === "refused-7.example")).toEqual({
    ...{ host: "refused-7.example", ip: null, port: 443, allowed: false, reason: "not_listed" },
    ...{ connections: 3, sent_bytes: 5, received_bytes: 7 },
    ...{ first_at: "2026-01-31T12:00:00.000Z", last_at: "2026-01-31T13:00:07.000Z" },
  });
  await daemon.restart("SIGKILL");
  expect(await daemon.ok("GET", `${PLACE}/worker/network`)).toEqual(seen);
  await daemon.ok("DELETE", `${PLACE}/worker`);
  await untilState(daemon, "r", "worker", "destroyed");
  for (const name of ["worker", sandbox.sandbox_id]) {
    expect(await daemon.ok("GET", `${PLACE}/${name}/network`)).toEqual(seen);
  }
});

test("the command line prints the same", async () => {
  const shown = await run(daemon, "egress", "network", "r", "worker");
  expect(shown.items).toHaveLength(2 * MANY);
  const { stdout } = await daemon.cli(["egress", "network", "r", "worker"]);
  expect(stdout).toMatch(/allowed-249\.example +192\.0\.2\.7 +443 +yes +3 +5 B +7 B/);
  expect(stdout).toMatch(/refused-249\.example +- +443 +no: not_listed/);
  expect(stdout).toMatch(/\b1 .*, 2 /);
});

const explained = (query: string, headers?: Record<string, string>) =>
  daemon.api("GET", `${PLACE}/fenced/egress/explain?${query}`, undefined, headers);

test("API, tool and command line explain whether a connection is allowed, by list and configuration", async () => {
  const body = {
    agent_id: "fenced",
    memory_mib: DESCRIBED_MIN_MIB,
    egress_allowlist: ["Internal.example:443", "10.1.0.0/16"],
  };
  await daemon.api("POST", `${PLACE}/from-template`, body);
  await untilState(daemon, "r", "fenced", "failed");
  const answer = await explained("host=evil.example&port=443");
  expect(answer.body).toEqual({
    ...{ host: "evil.example", port: 443, verdict: "refused", reason: "not_listed", entry: null },
    detail: expect.stringContaining("evil.example:443"),
    hint: expect.stringMatching(/evil\.example:443.*egress\.private_ranges/),
  });
  expect((await explained("host=10.1.2.3")).body).toMatchObject({
    verdict: "allowed",
    entry: "10.1.0.0/16",
    port: null,
  });
  expect((await explained("host=10.2.2.3")).body).toMatchObject({ verdict: "refused", reason: "blocked_address" });
  // The hosts file of egress leads to an address of the range that the configuration lets lists name.
  expect((await explained("host=internal.example&port=443")).body).toMatchObject({
    ...{ verdict: "allowed", entry: "Internal.example:443" },
  });
  expect(JSON.stringify((await explained("host=internal.example")).body)).not.toContain("10.1.0.9");
  const wrong = await explained("host=https://evil.example");
  expect(wrong).toMatchObject({ status: 422, body: { errors: [{ field: "host", code: "pattern" }] } });
  expect(await explained("port=443")).toMatchObject({ status: 422 });

  const client = await connectMcp(daemon, { way: "http", tools: "all" });
  const args = { room_id: "r", sandbox: "fenced", host: "evil.example", port: 443 };
  expect(await client.call("egress_explain", args)).toMatchObject({ ok: true, result: { verdict: "refused" } });
  await client.close();
});

test("the command line explains it for a sandbox, a room and all rooms, with the verdict as exit status", async () => {
  const why = (...words: string[]) => daemon.cli(["egress", "why", ...words]);
  const refused = await why("r/fenced", "evil.example:443");
  expect(refused).toMatchObject({ status: 1, stderr: "" });
  expect(refused.stdout).toMatch(/^evil\.example:443 .*\n.*evil\.example:443/);
  expect(await why("r", "fenced", "10.1.2.3:80")).toMatchObject({
    ...{ status: 0, stdout: expect.stringMatching(/^10\.1\.2\.3:80 .* 10\.1\.0\.0\/16 /) },
  });
  for (const words of [["r", "10.1.0.0/24"], ["10.1.0.0/24"]]) {
    const { status, stdout } = await why(...words);
    expect(status).toBe(0);
    expect(stdout).toMatch(/\nr\/fenced +allowed +10\.1\.0\.0\/24 .* 10\.1\.0\.0\/16 /);
  }
  const json = JSON.parse((await why("r/fenced", "[::1]:443", "--json")).stdout);
  expect(json).toMatchObject({ host: "::1", port: 443, verdict: "refused", room_id: "r", agent_id: "fenced" });
  expect(await why("r/fenced/x", "evil.example")).toMatchObject({
    status: 2,
    stderr: expect.stringContaining("HOST[:PORT]"),
  });
  expect(await why("r/fenced")).toMatchObject({ status: 2, stderr: expect.stringContaining("HOST[:PORT]") });
  expect((await daemon.cli(["egress", "explain", "r", "evil.example"])).stderr).toContain("egress why");
});

test("a caller without access to the sandbox sees nothing, and reads are audited", async () => {
  const ask = async (headers: Record<string, string>) =>
    (await daemon.api("GET", `${PLACE}/worker/network`, undefined, headers)).status;
  expect(await ask(bearer((await makeOrg(daemon, "other")).api_key))).toBe(404);
  expect(await ask(bearer((await makeKey(daemon, { rooms: ["elsewhere"] })).key))).toBe(404);
  expect(await ask(bearer((await makeKey(daemon, { agent: "somebody" })).key))).toBe(404);
  expect(await ask(bearer((await makeKey(daemon, { scopes: ["rooms:read"] })).key))).toBe(403);
  expect(await ask({ ...bearer(daemon.apiKey), "x-request-id": "req_read" })).toBe(200);
  const { items } = await daemon.ok("GET", "/v1/orgs/self/audit?request_id=req_read");
  expect(items).toMatchObject([{ event: "egress.network_read", agent_id: "worker", sandbox_id: sandbox.sandbox_id }]);
});
