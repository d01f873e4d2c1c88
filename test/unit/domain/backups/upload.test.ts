import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import type { S3Plan } from "../../../../daemon/domain/backups/deps.ts";
import { afterwards, dueAt } from "../../../../daemon/domain/backups/index.ts";
import { download, listStored, upload } from "../../../../daemon/domain/backups/upload.ts";
import { ObjectStoreServer, problem, STORE } from "../../../harness/object-store.ts";

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

test("what was sent comes back; a host's older ones go, and no other's", async () => {
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

test("backups of a clock that was ahead are no newer than their objects", async () => {
  await send(Buffer.of(1), 1, "host-1", 365);
  await send(Buffer.of(2), 2, "host-1", 365);
  const { name } = await send(Buffer.of(3), 3);
  const later = await send(Buffer.of(4), 4);
  expect([name, later.deleted]).toEqual(["host-1-20261103T000000000Z.roomd", ["host-1-20271102T000000000Z.roomd"]]);
  expect((await listStored(plan)).map((each) => each.name)).toEqual([later.name, name]);
});

test("a source that fails leaves no parts, no object, and the older ones", async () => {
  for (const day of [1, 2]) await send(Buffer.of(1), day);
  const failing = async function* () {
    yield randomBytes(20 * 1024 ** 2);
    throw new Error("the disk is broken");
  };
  await expect(upload(plan, failing(), { hostId: "host-1", at: at(3) })).rejects.toThrow("the disk is broken");
  expect([server.objects.size, server.uploads.size]).toEqual([2, 0]);
});

test("a part whose connection is cut is sent again", async () => {
  let cuts = 0;
  server.fault = (method) => (method === "PUT" && cuts++ < 2 ? problem(503, "SlowDown") : null);
  await send(randomBytes(1000), 1);
  expect([server.objects.size, cuts]).toEqual([1, 3]);
});

test("an object that does not come back as it was sent is no backup, and costs no older one", async () => {
  for (const day of [1, 2]) await send(Buffer.of(1), day);
  server.fault = (method, _, { objects }) => {
    const last = [...objects.keys()].at(-1) ?? "";
    const bytes = objects.get(last);
    if (method === "GET" && last.includes("20261103") && bytes) bytes[bytes.length - 1] = 255 ^ (bytes.at(-1) ?? 0);
    return null;
  };
  await expect(send(randomBytes(1000), 3)).rejects.toThrow("changed or cut off");
  expect([...server.objects.keys()].map((key) => key.slice(13, 21))).toEqual(["20261101", "20261102"]);
});

test("what a process that was killed has left is abandoned by the next, and no other host's", async () => {
  for (const [id, host] of [
    ["a", "host-1"],
    ["b", "host-12"],
  ] as const)
    server.uploads.set(id, { key: `roomd/${host}-20261101T000000000Z.roomd`, parts: new Map() });
  await send(Buffer.of(1), 2);
  expect([...server.uploads.keys()]).toEqual(["b"]);
});

test("errors say what to do", async () => {
  const said = (changed: Partial<S3Plan>) =>
    listStored({ ...plan, ...changed }).then(
      () => "",
      (error: Error & { hint: string }) => `${error.message} ${error.hint}`,
    );
  expect(await said({ bucket: "missing" })).toContain("There is no bucket missing");
  expect(await said({ credentials: { ...STORE, secret: "wrong" } })).toContain("backup.s3.secret_file");
  expect(await said({ credentials: { ...STORE, key_id: "wrong" } })).toContain("backup.s3.key_id");
});

test("one is due so long after a good one, sooner after one that failed, and whatever the clock says", () => {
  const HOUR = 3_600_000;
  const never = { since: 0, good: null, failed: null };
  const good = afterwards(never, { stored: { name: "a", size_bytes: 1 } }, 10 * HOUR);
  const failed = afterwards(good, { failed: "why" }, 34 * HOUR);
  expect(dueAt(never, 24 * HOUR, 50 * HOUR)).toBe(0);
  expect(dueAt(good, 24 * HOUR, 50 * HOUR)).toBe(34 * HOUR);
  expect(dueAt(failed, 24 * HOUR, 50 * HOUR)).toBe(34 * HOUR + HOUR / 4);
  expect(dueAt(good, 24 * HOUR, 5 * HOUR)).toBe(0);
});
