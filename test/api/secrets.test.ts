/** Credentials are returned once, to the requester: none is in the database, its log, the daemon's log, or the audit. */
import type { Database } from "bun:sqlite";
import { appendFileSync, readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { SshClient, sshPort } from "../harness/clients/ssh-client.ts";
import type { Json, TestDaemon } from "../harness/daemon.ts";
import { filesWithoutSecrets, secretsIn, secretsInFiles } from "../harness/secrets.ts";
import { bearer } from "./calls.ts";
import { withFailedSandbox } from "./sandboxes/failed-sandbox.ts";

let daemon: TestDaemon;
let rows: Database;
/** By kind. */
const secrets: Record<string, string> = {};

beforeAll(async () => {
  ({ daemon, rows } = await withFailedSandbox("it", { ROOMD_LOG_LEVEL: "debug" }));
});
afterAll(async () => {
  rows?.close();
  await daemon.stop();
});

const made = async (path: string, body: Json, key = daemon.apiKey): Promise<Json> => {
  const headers = { ...bearer(key), "idempotency-key": path };
  const first = await daemon.api("POST", path, body, headers);
  expect(first.status, JSON.stringify(first.body)).toBe(201);
  // Stored for retries of the same call, and returned to no other caller.
  expect((await daemon.api("POST", path, body, headers)).body).toEqual(first.body);
  return first.body;
};

test("a secret of every kind is created, used, and requested again", async () => {
  const AT = "/v1/rooms/r/sandboxes/it";
  rows.run("UPDATE sandboxes SET state = 'running'");
  const org = await made("/v1/orgs", { name: "another" }, daemon.operatorKey);
  const old = await made("/v1/orgs/self/keys", { name: "old" });
  const rotated = await made(`/v1/orgs/self/keys/${old.key_id}/rotate`, { grace_seconds: 60 });
  const port = await made(`${AT}/ports`, { port: 8000 });
  const access = await made(`${AT}/ssh-access`, {});
  Object.assign(secrets, {
    "the first key": daemon.apiKey,
    "the operator's key": daemon.operatorKey,
    "an organization's first key": org.api_key,
    "a key": old.key,
    "the key in its place": rotated.key,
    "a port's token": port.token,
    "an SSH password": access.token,
  });
  for (const key of [org.api_key, old.key, rotated.key]) {
    expect((await daemon.api("GET", "/v1/me", undefined, bearer(key))).status).toBe(200);
  }
  const path = new URL(port.path_url).pathname;
  await daemon.api("GET", path, undefined, { "x-port-token": port.token });
  await daemon.api("GET", `${path}?port_token=${port.token}`);
  using client = new SshClient(sshPort(daemon));
  await client.sshByPassword("it@r", access.token, ["true"]);
  await client.sshByPassword("it@r", daemon.apiKey, ["true"]);
  // Secrets in the wrong fields.
  await daemon.api("GET", `/v1/rooms/${old.key}?key=${old.key}&cursor=${old.key}`);
  await daemon.api("POST", "/v1/rooms", `{"room_id": ${old.key}}`);
  await daemon.api("POST", `${AT}/exec`, { argv: ["curl", "-H", `Authorization: Bearer ${old.key}`, access.token] });
  await daemon.api("POST", `${AT}/exec`, { command: `TOKEN=${port.token} roomd --api-key ${rotated.key}` });
});

test("each is detected by its format, and so would be found in any file", () => {
  for (const [kind, secret] of Object.entries(secrets)) expect(secretsIn(kind, `x=${secret};`), kind).toHaveLength(1);
  expect(secretsIn("", `${daemon.apiKey.slice(0, -1)} ${daemon.orgId}`)).toEqual([]);
});

test("none is in the files of the database, the daemon's log, or the audit over the API", async () => {
  const files = filesWithoutSecrets(daemon.dataDir);
  const names = files.map((file) => file.slice(daemon.dataDir.length + 1));
  expect(names).toEqual(expect.arrayContaining(["roomd.db", "roomd.db-wal"]));
  expect(daemon.leaks()).toEqual([]);
  const audit = await daemon.api("GET", "/v1/orgs/self/audit", undefined, { accept: "application/x-ndjson" });
  expect(audit.body.split("\n").length).toBeGreaterThan(20);
  const dump = files.map((file) => readFileSync(file, "latin1")).join("");
  // A key's first 8 characters are shown to users; no part of the rest may be.
  for (const [kind, secret] of Object.entries(secrets)) {
    for (const text of [dump, daemon.log, audit.body]) {
      const part = secret.slice(secret.startsWith("key-") ? 12 : 4).slice(0, 12);
      expect({ kind, found: text.includes(part) }).toEqual({ kind, found: false });
    }
  }
});

test("a leaked secret in a file would be found, and fails the test that stops the daemon", () => {
  const file = join(daemon.home, "copy.db");
  for (const name of readdirSync(daemon.dataDir).filter((each) => each.startsWith("roomd.db"))) {
    appendFileSync(file, readFileSync(join(daemon.dataDir, name)));
  }
  appendFileSync(file, `\0${secrets["a port's token"]}\0`);
  expect(secretsInFiles([file])).toEqual([expect.stringContaining("ptk_")]);
});
