/**
 * Closed days of the audit in a whole service: API calls return each record once, whether it is in the database or in a day's file; a
 * backup contains all of them; a day that cannot be written ends the service, or is postponed while the disk is full.
 */
import { existsSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { DISK_FAILED_STATUS } from "../../../daemon/core/disk-failure.ts";
import { CLOSE_FAILED } from "../../../daemon/domain/audit/retention.ts";
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { query } from "../../harness/durability/aged.ts";
import { ageAudit } from "../../harness/durability/older-audit.ts";
import { RECORDED_PROGRAM, recorder } from "../../harness/durability/recorded-disk.ts";
import { until } from "../../harness/guests.ts";
import { ObjectStoreServer, STORE } from "../../harness/images/object-store.ts";

const DAY_MS = 24 * 3600 * 1000;

/** A service with records of two days ago, which no daemon has seen since. */
async function agedDaemon(program?: readonly [string, ...string[]]): Promise<TestDaemon> {
  const daemon = await TestDaemon.start(program ? { program } : {});
  for (const room of ["one", "two"]) {
    await daemon.room(room);
    for (const agent of ["a", "b"])
      await daemon.ok("PUT", `/v1/rooms/${room}/agents/${agent}/subscriptions`, { topics: ["t"] });
    for (let n = 0; n < 30; n++)
      await daemon.ok("POST", `/v1/rooms/${room}/messages`, { source: "a", destination: "b", payload: `${n}` });
  }
  return daemon;
}

const daysOf = ({ dataDir }: TestDaemon) => {
  const directory = join(dataDir, "audit");
  return existsSync(directory) ? readdirSync(directory).filter((name) => name.endsWith(".db")) : [];
};
const areClosed = (daemon: TestDaemon) =>
  until("the day is closed", () =>
    daysOf(daemon).length > 0 &&
    query<{ n: number }>(daemon, `SELECT count(*) AS n FROM audit WHERE at < '${today()}'`)[0]?.n === 0
      ? true
      : null,
  );
const today = () => new Date().toISOString().slice(0, 10);

async function pagesOf(daemon: TestDaemon, path: string): Promise<AuditRecord[]> {
  const items: AuditRecord[] = [];
  for (let cursor: string | null = null; ; ) {
    const page: Json = await daemon.ok("GET", `${path}limit=7${cursor ? `&cursor=${encodeURIComponent(cursor)}` : ""}`);
    items.push(...page.items);
    cursor = page.next_cursor;
    if (cursor === null) return items;
  }
}

async function linesOf(daemon: TestDaemon, path: string): Promise<Json[]> {
  const headers = { authorization: `Bearer ${daemon.apiKey}`, accept: "application/x-ndjson" };
  const text = await (await fetch(`${daemon.url}${path}`, { headers })).text();
  return text
    .trim()
    .split("\n")
    .map((line) => JSON.parse(line));
}

/** Records of before, by every call that lists them. */
async function listed(daemon: TestDaemon, before: string) {
  const lists = {
    page: await pagesOf(daemon, "/v1/orgs/self/audit?"),
    ascending: await pagesOf(daemon, "/v1/orgs/self/audit?order=asc&"),
    room: await pagesOf(daemon, "/v1/rooms/one/audit?event=message.&"),
    named: await pagesOf(daemon, "/v1/orgs/self/audit?room_id=two&"),
    lines: await linesOf(daemon, "/v1/orgs/self/audit?order=asc"),
    events: await linesOf(daemon, "/v1/orgs/self/events?after=0&follow=false"),
    room_events: await linesOf(daemon, "/v1/rooms/one/events?after=0&follow=false"),
  };
  const ids = Object.entries(lists).map(([name, items]) => [
    name,
    items.filter(({ at }) => at < before).map(({ audit_id, seq }) => `${seq} ${audit_id}`),
  ]);
  return Object.fromEntries(ids) as Record<string, string[]>;
}

test("every record of a closed day is returned by every call, and is in a backup", { timeout: 120_000 }, async () => {
  await using daemon = await agedDaemon();
  await daemon.end("SIGTERM");
  const before = new Date().toISOString();
  await daemon.serve();
  const found = await listed(daemon, before);
  await daemon.end("SIGTERM");
  ageAudit(daemon, 2 * DAY_MS);
  await daemon.serve();
  await areClosed(daemon);
  expect(await listed(daemon, today())).toMatchObject(
    Object.fromEntries(Object.entries(found).map(([name, ids]) => [name, expect.arrayContaining(ids)])),
  );
  const now = await listed(daemon, today());
  for (const ids of Object.values(now)) expect(new Set(ids).size).toBe(ids.length);
  expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
  const [oldest] = await pagesOf(daemon, `/v1/orgs/self/audit?order=asc&until=${today()}T00:00:00Z&`);
  expect((await daemon.ok("GET", `/v1/orgs/self/audit?audit_id=${oldest?.audit_id}`)).items).toHaveLength(1);
  // In a backup, which is restored elsewhere.
  const home = mkdtempSync("/tmp/roomd-d-");
  try {
    const file = join(home, "backup.tar");
    expect(await daemon.cli(["backup", file])).toMatchObject({ status: 0 });
    const env = { ROOMD_DATA_DIR: join(home, "data"), ROOMD_RUNTIME_DIR: join(home, "run") };
    const restored = await daemon.cli(["restore", file, "--json"], undefined, env);
    expect(restored).toMatchObject({ status: 0 });
    expect(JSON.parse(restored.stdout)).toMatchObject({ audit_ok: true });
    expect(readdirSync(join(home, "data/audit"))).toEqual(daysOf(daemon));
    rmSync(join(home, "data/audit"), { recursive: true });
    const verified = await daemon.cli(["audit", "verify", "--host", "--json"], undefined, env);
    expect(verified.status).toBe(1);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("a day is uploaded once to an object store, and restored from it", { timeout: 120_000 }, async () => {
  await using daemon = await agedDaemon();
  const server = new ObjectStoreServer();
  const home = mkdtempSync("/tmp/roomd-d-");
  const kept = (name: string, text: string) => {
    writeFileSync(join(home, name), text, { mode: 0o600 });
    return join(home, name);
  };
  const store = {
    ROOMD_BACKUP_S3_ENDPOINT: server.endpoint,
    ROOMD_BACKUP_S3_BUCKET: STORE.bucket,
    ROOMD_BACKUP_S3_KEY_ID: STORE.key_id,
    ROOMD_BACKUP_S3_SECRET_FILE: kept("secret", STORE.secret),
    ROOMD_BACKUP_S3_PASSPHRASE_FILE: kept("passphrase", "a passphrase of the tests"),
  };
  try {
    await daemon.end("SIGTERM");
    ageAudit(daemon, 2 * DAY_MS);
    await daemon.serve();
    await areClosed(daemon);
    const backUp = async () =>
      JSON.parse((await daemon.cli(["backup", "--to", "s3", "--json"], undefined, store)).stdout) as Json;
    expect(await backUp()).toMatchObject({ days_sent: 1, days_missing: [] });
    const { url, ...second } = await backUp();
    expect(second).toMatchObject({ days_sent: 0, days_missing: [] });
    expect([...server.objects.keys()].filter((key) => key.startsWith("audit/"))).toHaveLength(1);
    const env = { ...store, ROOMD_DATA_DIR: join(home, "data"), ROOMD_RUNTIME_DIR: join(home, "run") };
    const restored = await daemon.cli(["restore", "--from", url, "--json"], undefined, env);
    expect(JSON.parse(restored.stdout)).toMatchObject({ audit_ok: true, days_missing: [] });
    expect(readdirSync(join(home, "data/audit"))).toEqual(daysOf(daemon));
    // Without the day all else is restored.
    for (const key of server.objects.keys()) if (key.startsWith("audit/")) server.objects.delete(key);
    const without = { ...store, ROOMD_DATA_DIR: join(home, "without"), ROOMD_RUNTIME_DIR: join(home, "run") };
    const result = await daemon.cli(["restore", "--from", url, "--json"], undefined, without);
    expect(JSON.parse(result.stdout)).toMatchObject({ audit_ok: false, days_missing: daysOf(daemon), orgs: 1 });
  } finally {
    await server.stop();
    rmSync(home, { recursive: true });
  }
});

test("a failed sync of a day ends the service with status 74, and the next start closes the day", {
  timeout: 120_000,
}, async () => {
  await using daemon = await agedDaemon(RECORDED_PROGRAM);
  await daemon.end("SIGTERM");
  ageAudit(daemon, 2 * DAY_MS);
  const day = query<{ at: string }>(daemon, "SELECT min(at) AS at FROM audit")[0]?.at.slice(0, 10);
  const part = join(daemon.dataDir, "audit", `${day}.db.part`);
  const recording = join(daemon.dataDir, "recording");
  daemon.env.DISK_RECORDER = recorder({ to: recording, paths: [part], inject: ["fsync,fdatasync:error=EIO:when=1"] });
  // It may end before it is ready.
  await daemon.serve().catch(() => {});
  delete daemon.env.DISK_RECORDER;
  await until("the service has exited", () => (daemon.runs ? null : true));
  expect(daemon.exitCode).toBe(DISK_FAILED_STATUS);
  expect(daysOf(daemon)).toEqual([]);
  await daemon.serve();
  await areClosed(daemon);
  expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
});

test("without space for a day, it waits and the service continues", { timeout: 120_000 }, async () => {
  await using daemon = await agedDaemon(RECORDED_PROGRAM);
  await daemon.end("SIGTERM");
  ageAudit(daemon, 2 * DAY_MS);
  const day = query<{ at: string }>(daemon, "SELECT min(at) AS at FROM audit")[0]?.at.slice(0, 10);
  const part = join(daemon.dataDir, "audit", `${day}.db.part`);
  const recording = join(daemon.dataDir, "recording");
  daemon.env.DISK_RECORDER = recorder({
    to: recording,
    paths: [part],
    inject: ["fsync,fdatasync:error=ENOSPC:when=1+"],
  });
  await daemon.serve();
  delete daemon.env.DISK_RECORDER;
  await until("the day could not be closed", () => daemon.logged({ message: CLOSE_FAILED })[0] ?? null);
  expect((await daemon.ok("GET", "/v1/orgs/self/audit/verify")).ok).toBe(true);
  expect(daysOf(daemon)).toEqual([]);
});
