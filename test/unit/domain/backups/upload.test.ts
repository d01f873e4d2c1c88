import { createHash, randomBytes } from "node:crypto";
import { existsSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { fetchDay, retireDays, sendDays } from "../../../../daemon/domain/backups/audit-days.ts";
import type { S3Plan } from "../../../../daemon/domain/backups/deps.ts";
import { afterwards, dueAt } from "../../../../daemon/domain/backups/index.ts";
import { BrokenBackup } from "../../../../daemon/domain/backups/seal.ts";
import { download, listStored, upload } from "../../../../daemon/domain/backups/upload.ts";
import { ObjectStoreServer, problem, STORE } from "../../../harness/images/object-store.ts";

let server: ObjectStoreServer;
let plan: S3Plan;
beforeEach(() => {
  server = new ObjectStoreServer();
  plan = {
    ...{ endpoint: new URL(server.endpoint), bucket: STORE.bucket, prefix: "roomd/", credentials: STORE },
    ...{ passphrase: "a passphrase of the tests", everyMs: null, keep: 2, readBack: true },
  };
});
afterEach(() => server.stop());

async function* streamOf(bytes: Uint8Array) {
  for (let at = 0; at < bytes.length; at += 300_000) yield bytes.subarray(at, at + 300_000);
}
const at = (day: number) => new Date(Date.UTC(2026, 10, day));
const send = (bytes: Uint8Array, day: number, hostId = "host-1", aheadDays = 0) => {
  server.time = at(day);
  return upload(plan, streamOf(bytes), { hostId, at: at(day + aheadDays) });
};

test("an upload is restored unchanged; older ones of the host are deleted, and no other host's", async () => {
  const bytes = randomBytes(20 * 1024 ** 2);
  await send(bytes, 1, "host-12");
  for (const day of [1, 2, 3]) await send(randomBytes(1000), day);
  const { name, deleted } = await send(bytes, 4);
  expect([name, deleted]).toEqual(["host-1-20261104T000000000Z.roomd", ["host-1-20261102T000000000Z.roomd"]]);
  const found = await listStored(plan);
  expect(found.map((each) => each.name)).toEqual([
    name,
    "host-1-20261103T000000000Z.roomd",
    "host-12-20261101T000000000Z.roomd",
  ]);
  const back = await Array.fromAsync(download(plan, { bucket: STORE.bucket, key: `roomd/${name}` }));
  expect(Buffer.concat(back).equals(bytes)).toBe(true);
});

test("backups of a clock that was ahead count as no newer than their objects", async () => {
  await send(Buffer.of(1), 1, "host-1", 365);
  await send(Buffer.of(2), 2, "host-1", 365);
  const { name } = await send(Buffer.of(3), 3);
  const later = await send(Buffer.of(4), 4);
  expect([name, later.deleted]).toEqual(["host-1-20261103T000000000Z.roomd", ["host-1-20271102T000000000Z.roomd"]]);
  expect((await listStored(plan)).map((each) => each.name)).toEqual([later.name, name]);
});

test("a failing source leaves no parts and no object, and keeps the older ones", async () => {
  for (const day of [1, 2]) await send(Buffer.of(1), day);
  const failing = async function* () {
    yield randomBytes(20 * 1024 ** 2);
    throw new Error("the disk is broken");
  };
  await expect(upload(plan, failing(), { hostId: "host-1", at: at(3) })).rejects.toThrow("the disk is broken");
  expect([server.objects.size, server.uploads.size]).toEqual([2, 0]);
});

test("a part is retried after a broken connection", async () => {
  let cuts = 0;
  server.fault = (method) => (method === "PUT" && cuts++ < 2 ? problem(503, "SlowDown") : null);
  await send(randomBytes(1000), 1);
  expect([server.objects.size, cuts]).toEqual([1, 3]);
});

test("closed days of the audit are uploaded once, restored, and deleted once no backup names them", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-days-"));
  try {
    const day = (name: string) => {
      const bytes = randomBytes(200_000);
      writeFileSync(join(home, name), bytes);
      return { name, sha256: createHash("sha256").update(bytes).digest("hex"), file: join(home, name) };
    };
    const days = ["2026-11-01.db", "2026-11-02.db"].map(day);
    const [first] = days as [(typeof days)[0]];
    expect(await sendDays(plan, "host-1", days)).toEqual({ sent: 2, damaged: [] });
    expect(await sendDays(plan, "host-1", [...days, day("2026-11-03.db")])).toEqual({ sent: 1, damaged: [] });
    const keys = [...server.objects.keys()];
    expect(keys.every((key) => key.startsWith("roomd/audit/host-1/"))).toBe(true);
    // Another host has its own days, and another passphrase opens none of these.
    expect(await sendDays(plan, "host-12", days)).toEqual({ sent: 2, damaged: [] });
    expect(await sendDays({ ...plan, passphrase: "another one of the tests" }, "host-1", days)).toMatchObject({
      sent: 2,
    });
    const to = join(home, "back");
    const from = { bucket: STORE.bucket, hostId: "host-1" };
    expect(await fetchDay(plan, { ...from, day: first, to })).toBe(true);
    expect(readFileSync(to).equals(readFileSync(first.file))).toBe(true);
    const absent = { ...from, day: { ...first, name: "2026-10-01.db" }, to: `${to}-2` };
    expect([await fetchDay(plan, absent), existsSync(absent.to)]).toEqual([false, false]);
    // A backup from before it was purged names it.
    const purged = [{ ...first, removed_at: at(4).toISOString() }];
    for (const made of [3, 5]) await send(Buffer.of(1), made);
    const ofFirst = () =>
      [...server.objects.keys()].filter((key) => key.includes("host-1/") && key.includes(first.name));
    await retireDays(plan, "host-1", purged);
    expect(ofFirst()).toHaveLength(2);
    await send(Buffer.of(1), 6);
    await retireDays(plan, "host-1", purged);
    expect(ofFirst()).toEqual([]);
    expect([...server.objects.keys()].filter((key) => key.includes("/audit/"))).toHaveLength(5);
    expect((await listStored(plan)).map(({ name }) => name)).toHaveLength(2);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test.each([
  ["cut off", true, "of another size", (bytes: Buffer) => bytes.subarray(0, -100)],
  ["changed", false, "without a complete backup after it", (bytes: Buffer) => bytes.fill(7, 100_000, 100_001)],
  ["changed", true, "in its turn", (bytes: Buffer) => bytes.fill(7, 100_000, 100_001)],
])(
  "an object of a closed day that was %s is sent again (complete backup: %j, %s)",
  async (_, isComplete, __, change) => {
    const home = mkdtempSync(join(tmpdir(), "roomd-days-"));
    try {
      const bytes = randomBytes(200_000);
      const file = join(home, "2026-11-01.db");
      writeFileSync(file, bytes);
      const day = { name: "2026-11-01.db", sha256: createHash("sha256").update(bytes).digest("hex"), file };
      server.time = at(1);
      expect(await sendDays(plan, "host-1", [day])).toEqual({ sent: 1, damaged: [] });
      if (isComplete) await send(Buffer.of(1), 2);
      const [key] = [...server.objects.keys()].filter((each) => each.includes("/audit/")) as [string];
      server.objects.set(key, change(Buffer.from(server.objects.get(key) ?? "")));
      expect(await sendDays(plan, "host-1", [day])).toEqual({ sent: 1, damaged: [] });
      const to = join(home, "back");
      expect(await fetchDay(plan, { bucket: STORE.bucket, hostId: "host-1", day, to })).toBe(true);
      expect(readFileSync(to).equals(bytes)).toBe(true);
      expect(await sendDays(plan, "host-1", [day])).toEqual({ sent: 0, damaged: [] });
    } finally {
      rmSync(home, { recursive: true });
    }
  },
);

test("of days that a complete backup has followed, one is read back", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-days-"));
  try {
    const days = ["2026-11-01.db", "2026-11-02.db", "2026-11-03.db"].map((name) => {
      writeFileSync(join(home, name), name);
      return { name, sha256: createHash("sha256").update(name).digest("hex"), file: join(home, name) };
    });
    server.time = at(1);
    await sendDays(plan, "host-1", days);
    await send(Buffer.of(1), 2);
    const reads = () => server.asked.filter((each) => each.startsWith("GET") && each.includes("/audit/")).length;
    const before = reads();
    expect(await sendDays(plan, "host-1", days)).toEqual({ sent: 0, damaged: [] });
    expect(reads() - before).toBe(1);
    expect(await sendDays({ ...plan, readBack: false }, "host-1", days)).toEqual({ sent: 0, damaged: [] });
    expect(reads() - before).toBe(1);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("a closed day with a changed file is not uploaded", async () => {
  const home = mkdtempSync(join(tmpdir(), "roomd-days-"));
  try {
    const file = join(home, "2026-11-01.db");
    writeFileSync(file, "changed");
    const days = [{ name: "2026-11-01.db", sha256: "0".repeat(64), file }];
    expect(await sendDays(plan, "host-1", days)).toEqual({ sent: 0, damaged: ["2026-11-01.db"] });
    expect(server.objects.size).toBe(0);
    // At no time, since a crash would leave it there.
    expect(server.asked.filter((each) => each.startsWith("POST") && each.includes("uploadId="))).toEqual([]);
  } finally {
    rmSync(home, { recursive: true });
  }
});

test("an object that differs from its upload is no backup, and deletes no older one", async () => {
  for (const day of [1, 2]) await send(Buffer.of(1), day);
  server.fault = (method, _, { objects }) => {
    const last = [...objects.keys()].at(-1) ?? "";
    const bytes = objects.get(last);
    if (method === "GET" && last.includes("20261103") && bytes) bytes[bytes.length - 1] = 255 ^ (bytes.at(-1) ?? 0);
    return null;
  };
  await expect(send(randomBytes(1000), 3)).rejects.toThrow(BrokenBackup);
  expect([...server.objects.keys()].map((key) => key.slice(13, 21))).toEqual(["20261101", "20261102"]);
});

test("leftovers of a killed process are aborted by the next, but not those of other hosts", async () => {
  for (const [id, key] of [
    ["a", "host-1-20261101T000000000Z.roomd"],
    ["b", "host-12-20261101T000000000Z.roomd"],
    ["c", "audit/host-1/0/2026-11-01.db-0"],
  ] as const)
    server.uploads.set(id, { key: `roomd/${key}`, parts: new Map() });
  await send(Buffer.of(1), 2);
  expect([...server.uploads.keys()]).toEqual(["b"]);
});

test("errors contain the remedy", async () => {
  const errorText = (changed: Partial<S3Plan>) =>
    listStored({ ...plan, ...changed }).then(
      () => "",
      (error: Error & { hint: string }) => `${error.message} ${error.hint}`,
    );
  expect(await errorText({ bucket: "missing" })).toContain("backup.s3.bucket");
  expect(await errorText({ credentials: { ...STORE, secret: "wrong" } })).toContain("backup.s3.secret_file");
  expect(await errorText({ credentials: { ...STORE, key_id: "wrong" } })).toContain("backup.s3.key_id");
});

test("a backup is due a fixed time after a success, sooner after a failure, for any clock", () => {
  const HOUR = 3_600_000;
  const never = { since: 0, good: null, failed: null };
  const good = afterwards(never, { stored: { name: "a", size_bytes: 1 } }, 10 * HOUR);
  const failed = afterwards(good, { failed: "why" }, 34 * HOUR);
  expect(dueAt(never, 24 * HOUR, 50 * HOUR)).toBe(0);
  expect(dueAt(good, 24 * HOUR, 50 * HOUR)).toBe(34 * HOUR);
  expect(dueAt(failed, 24 * HOUR, 50 * HOUR)).toBe(34 * HOUR + HOUR / 4);
  expect(dueAt(good, 24 * HOUR, 5 * HOUR)).toBe(0);
});
