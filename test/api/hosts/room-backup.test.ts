/**
 * Room backups over hosts: taken and restored through any host, to any host, without leftovers after either host or the caller disconnects.
 */
import { createHash, randomBytes } from "node:crypto";
import { existsSync, readdirSync } from "node:fs";
import { request } from "node:http";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { answerOf, type Json, type TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { bearer } from "../calls.ts";

const BYTES = 12 * 1024 ** 2;
let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;
let digest: string;
let file: Buffer;

beforeAll(async () => {
  service = await TestHosts.start(2, { guests: false });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
  await one.ok("POST", "/v1/rooms", { room_id: "source", host: "host-1", labels: { of: "test" } });
  const body = randomBytes(BYTES);
  digest = createHash("sha256").update(body).digest("hex");
  const put = { method: "PUT", headers: bearer(one.apiKey), body };
  expect((await fetch(`${two.url}/v1/rooms/source/drive/files/large`, put)).status).toBe(201);
  await two.ok("GET", "/v1/rooms/source/messages?agent_id=ben");
  for (const message_id of ["first", "second"]) {
    const message = { source: "ann", destination: "ben", message_id, payload: { of: message_id } };
    await two.ok("POST", "/v1/rooms/source/messages", message);
  }
  // Of host-1, by the other.
  file = Buffer.from(await (await fetch(`${two.url}${pathOf("source")}`, { headers: bearer(one.apiKey) })).bytes());
}, 60_000);
afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

const pathOf = (room: string, host?: string) => `/v1/rooms/${room}/backup${host ? `?host=${host}` : ""}`;
const bringBack = async (by: TestDaemon, room: string, host?: string) => {
  const put = { method: "PUT", headers: bearer(by.apiKey), body: new Uint8Array(file) };
  return answerOf(await fetch(by.url + pathOf(room, host), put), "PUT");
};

async function expectWhole(room: string): Promise<void> {
  for (const by of [one, two]) {
    const sent = await fetch(`${by.url}/v1/rooms/${room}/drive/files/large`, { headers: bearer(by.apiKey) });
    const got = createHash("sha256")
      .update(await sent.bytes())
      .digest("hex");
    expect([by.env.ROOMD_HOST_ID, got]).toEqual([by.env.ROOMD_HOST_ID, digest]);
    const { items } = await by.ok("GET", `/v1/rooms/${room}/messages?agent_id=ben`);
    expect(items.map(({ message_id }: Json) => message_id)).toEqual(["first", "second"]);
  }
}

/** A host makes the directory for files when it has one. */
function namesIn({ dataDir }: TestDaemon, directory: "rooms" | "room-files"): string[] {
  const path = join(dataDir, directory);
  return existsSync(path) ? readdirSync(path) : [];
}

/** Neither of rooms nor of files, on either host. */
async function expectNothingOf(room: string): Promise<void> {
  const { items } = await one.ok("GET", "/v1/rooms?limit=1000");
  expect(items.map(({ room_id }: Json) => room_id)).not.toContain(room);
  const known = new Set(items.map(({ room_uid }: Json) => room_uid));
  for (const host of [one, two]) {
    await until("no room file remains", () => namesIn(host, "room-files").length === 0);
    await until("no room directory remains", () => namesIn(host, "rooms").every((uid) => known.has(uid)));
  }
}

describe("a room from a backup file", () => {
  test.each([
    ["to its own host", () => one, "host-1"],
    ["to the other host", () => one, "host-2"],
    ["to the other host, in the opposite direction", () => two, "host-1"],
  ])("is restored completely %s", async (_, by, host) => {
    const room = `to-${host}-by-${by().env.ROOMD_HOST_ID}`;
    const { status, body } = await bringBack(by(), room, host);
    expect([status, body.of_room, body.room.host]).toEqual([201, "source", host]);
    await expectWhole(room);
  });

  test("is placed automatically without a given host", async () => {
    const { status, body } = await bringBack(two, "anywhere");
    expect(status).toBe(201);
    expect(["host-1", "host-2"]).toContain(body.room.host);
    await expectWhole("anywhere");
  });

  test("cannot have the name of a room on another host", async () => {
    const { status, body } = await bringBack(two, "source", "host-2");
    expect([status, body.code]).toEqual([409, "room_id_in_use"]);
    expect((await one.ok("GET", "/v1/rooms/source")).host).toBe("host-1");
  });

  test("is refused for an unknown host", async () => {
    const { status, body } = await bringBack(one, "nowhere", "host-9");
    expect([status, body.code]).toEqual([422, "validation_failed"]);
    await expectNothingOf("nowhere");
  });
});

/** Sends the half of it, and no more. */
async function half(by: TestDaemon, room: string, host: string) {
  const headers = { ...bearer(by.apiKey), "content-length": String(file.length) };
  const sending = request(by.url + pathOf(room, host), { method: "PUT", headers });
  const over = new Promise<number | null>((resolve) => {
    sending.on("response", (answer) => resolve(answer.statusCode ?? null));
    sending.on("error", () => resolve(null));
  });
  sending.write(file.subarray(0, file.length / 2));
  const to = host === "host-1" ? one : two;
  await until("the restore is in progress", () => namesIn(to, "room-files").length > 0);
  return { sending, over };
}

describe("nothing remains, and the name is free,", () => {
  test("if the caller disconnects during the upload", async () => {
    const { sending } = await half(one, "cut-off", "host-2");
    sending.destroy();
    await expectNothingOf("cut-off");
    expect((await bringBack(two, "cut-off", "host-1")).status).toBe(201);
    await expectWhole("cut-off");
  });

  test("if the destination host is killed", async () => {
    const { over, sending } = await half(one, "killed", "host-2");
    await two.end("SIGKILL");
    sending.end(file.subarray(file.length / 2));
    expect(await over).toBe(503);
    await two.serve();
    await service.knowEachOther();
    await expectNothingOf("killed");
    expect((await bringBack(one, "killed", "host-2")).status).toBe(201);
    await expectWhole("killed");
  });

  test("if the receiving host is killed", async () => {
    const { over } = await half(one, "entry-killed", "host-2");
    await one.end("SIGKILL");
    expect(await over).toBe(null);
    await one.serve();
    await service.knowEachOther();
    await expectNothingOf("entry-killed");
    expect((await bringBack(two, "entry-killed", "host-2")).status).toBe(201);
    await expectWhole("entry-killed");
  });
});
