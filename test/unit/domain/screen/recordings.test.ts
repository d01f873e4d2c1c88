/** Recordings of a screen: the reasons of their end, the state of recordings that no call has ended, and screen data that is rejected. */
import { mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { listAudit } from "../../../../daemon/domain/audit/rows.ts";
import { Recorder } from "../../../../daemon/domain/screen/recordings/recorder.ts";
import { beginFile } from "../../../../daemon/domain/screen/recordings/store.ts";
import { freshReads } from "../../../../daemon/domain/screen/rfb/limits.ts";
import { MAX_RECORDINGS, type RecordingEnd, type RecordingRecord } from "../../../../shared/api/recordings.ts";
import { newId, type OrgId } from "../../../../shared/ids.ts";
import { packed, RfbServer, rectangle, update } from "../../../harness/browser/rfb-server.ts";
import { ScreenGuest, serve } from "../../../harness/browser/screen-guest.ts";

const SLOW = { timeout: 10_000 };
let directory: string;
let guest: ScreenGuest;
let servers: RfbServer[];

beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "roomd-recordings-"));
  guest = again();
});
afterEach(async () => {
  await guest.screens.stop();
  rmSync(directory, { recursive: true });
});

/** A service on the same directory. */
function again(): ScreenGuest {
  servers = [];
  const handler = (stream: Parameters<ReturnType<typeof serve>>[0]) => {
    const server = new RfbServer();
    servers.push(server);
    return serve(server)(stream);
  };
  return new ScreenGuest(handler, { paths: { recordings: () => directory } });
}

const start = async (seconds?: number) =>
  (await guest.recordings("recording_start", seconds === undefined ? {} : { max_seconds: seconds })) as RecordingRecord;
const get = async (recording_id: string) =>
  (await guest.recordings("recording_get", { recording_id })) as RecordingRecord;
const ended = async (recording_id: string, reason: RecordingEnd) =>
  await expect.poll(async () => (await get(recording_id)).end_reason, SLOW).toBe(reason);

test.each<[RecordingEnd, () => void]>([
  ["sandbox_stopped", () => guest.become("paused")],
  ["screen_lost", () => servers[0]?.wire.close()],
  ["screen_lost", () => servers[0]?.send(update(rectangle({ x: 0, y: 0, width: 4, height: 4 }, 7)))],
  ["screen_lost", () => servers[0]?.send(packed(["u8", 99]))],
  [
    "screen_lost",
    () => servers[0]?.send(update(rectangle({ x: 0, y: 0, width: 9, height: 9 }, 16, packed(["u32", 2 ** 31])))),
  ],
  ["service_restarted", () => void guest.screens.stop()],
])("a recording ended by %s has that reason, and is in the audit log", async (reason, act) => {
  const { recording_id } = await start();
  await expect.poll(async () => (await get(recording_id)).size_bytes, SLOW).toBeGreaterThan(64 * 40 * 4);
  act();
  await ended(recording_id, reason);
  expect(await get(recording_id)).toMatchObject({
    state: "ended",
    width: 64,
    height: 40,
    ended_at: expect.any(String),
  });
  const recorded = () => listAudit(guest.database.queries, { org_id: "org_1" as OrgId, order: "asc", limit: 10 });
  await expect.poll(() => recorded().map(({ event }) => event), SLOW).toContain("screen.recording_ended");
  expect(recorded()[0]?.details).toContain(`"end_reason":"${reason}"`);
  // Nothing of it is in the way of the next.
  if (reason === "screen_lost")
    await guest.recordings("recording_stop", { recording_id: (await start()).recording_id });
});

test("a recording ends at its time limit", async () => {
  await ended((await start(1)).recording_id, "time_up");
});

test("a recording of a killed service has the data stored until then", async () => {
  const { recording_id } = await start();
  await expect.poll(async () => (await get(recording_id)).size_bytes, SLOW).toBeGreaterThan(64 * 40 * 4);
  const data = join(directory, `${recording_id}.rfb`);
  const known = join(directory, `${recording_id}.json`);
  const [bytes, kept] = [readFileSync(data), readFileSync(known)];
  await guest.screens.stop();
  // As it lay there before.
  writeFileSync(data, bytes);
  writeFileSync(known, kept);
  guest = again();
  expect(await get(recording_id)).toMatchObject({
    state: "ended",
    end_reason: "service_restarted",
    size_bytes: bytes.byteLength,
  });
  await guest.recordings("recording_delete", { recording_id });
  expect(readdirSync(directory)).toEqual([]);
});

test("recordings per room are limited, for all owners together", async () => {
  const kept = {
    agent_id: "worker-1",
    sandbox_id: "sbx_other",
    started_at: new Date().toISOString(),
    width: 1,
    height: 1,
  };
  for (let count = 0; count < MAX_RECORDINGS; count++) {
    const file = await beginFile(directory, { recording_id: newId("rec"), ...kept, end: null });
    await file.close();
  }
  await expect(start()).rejects.toMatchObject({ code: "insufficient_capacity" });
  // Recordings of another sandbox are not listed.
  expect(await guest.recordings("recording_list")).toEqual({ items: [] });
});

test("a recording ends at its size limit and on a full disk", async () => {
  for (const [reason, means] of [
    ["too_large", { mostBytes: 64 * 40 * 4 + 500, hasSpace: () => true }],
    ["disk_full", { hasSpace: () => false }],
  ] as const) {
    const server = new RfbServer();
    const recording_id = newId("rec");
    const facts = { agent_id: "a", sandbox_id: "s", started_at: "", end: null };
    const makeFile = (size: { width: number; height: number }) =>
      beginFile(directory, { recording_id, ...facts, ...size });
    const recorder = await Recorder.open(server.wire, makeFile, {
      mostMs: 60_000,
      reads: freshReads(),
      owner: "host",
      ...means,
    });
    let shade = 0;
    const painting = setInterval(() => server.paint(shade++ % 256), 20);
    expect(await recorder.over).toBe(reason);
    clearInterval(painting);
    expect(server.closed).toBe(true);
    expect(readFileSync(join(directory, `${recording_id}.rfb`)).byteLength).toBe(recorder.size_bytes);
  }
});
