/**
 * Syncs that fail, or take seconds, one kind of file after another. The kernel drops the pages that it could not write, and reports that once: the
 * service ends with status 74 before it acknowledges anything more, and a loss of power, before the next start or after it, takes nothing that was
 * acknowledged. The tests share a daemon, and those of the check its data.
 */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { DISK_FAILED_STATUS } from "../../../daemon/core/disk-failure.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { Acknowledged } from "../../harness/durability/acknowledged.ts";
import {
  RECORDED_PROGRAM,
  RecordedDisk,
  type Recorder,
  recorder,
  snapshotOf,
} from "../../harness/durability/recorded-disk.ts";
import { until } from "../../harness/guests.ts";
import { Chance } from "../../harness/random.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";
const WORK_MS = LONG ? 20_000 : 8_000;
const END_MS = 2_000;
const RESTARTED_MS = 300;
const CLIENTS = 4;
const SYNCS = "fsync,fdatasync";

const LOG = "roomd.db-wal";
const DATABASE = "roomd.db";
const HEADS = "audit-heads.ndjson";

let home: string;
let daemon: TestDaemon;
let acknowledged: Acknowledged;
/** A room with a drive. */
let kept: string;
/** A copy of the data from before the first test. */
let prepared: string;
const chance = new Chance();

beforeAll(async () => {
  home = mkdtempSync("/tmp/roomd-f-");
  daemon = await TestDaemon.start({ program: RECORDED_PROGRAM, env: { ROOMD_AUDIT_HEADS_INTERVAL: "1s" } });
  acknowledged = new Acknowledged(daemon);
  console.log(`failed syncs: ROOMD_TEST_SEED=${chance.seed}`);
  kept = (await daemon.room("kept")).room_uid;
  await daemon.end("SIGTERM");
  prepared = snapshotOf(daemon.dataDir, join(home, "prepared"));
});

afterAll(async () => {
  await daemon.stop();
  rmSync(home, { recursive: true, force: true });
});

let recordings = 0;

/** Starts the daemon under a recorder, and returns the file of the recording. A failure of the disk may end the start. */
async function serve(how: Omit<Recorder, "to">): Promise<string> {
  await daemon.end("SIGTERM");
  const to = join(home, `recording-${++recordings}`);
  daemon.env.DISK_RECORDER = recorder({ to, ...how });
  try {
    await daemon.serve();
  } catch (error) {
    if (daemon.exitCode !== DISK_FAILED_STATUS) throw error;
  } finally {
    delete daemon.env.DISK_RECORDER;
  }
  return to;
}

/** Responses, of all since the first test, that a power loss would revoke: each unsynced byte of the file is dropped. */
async function lostIn(name: string, disk: RecordedDisk): Promise<string[]> {
  const left = snapshotOf(daemon.dataDir, join(home, "left"));
  try {
    for (const each of [name, "roomd.db-shm"]) rmSync(join(left, each), { force: true });
    const least = disk.leastOf(name);
    if (least) writeFileSync(join(left, name), least);
    return await acknowledged.brokenIn(left, Number.POSITIVE_INFINITY);
  } finally {
    rmSync(left, { recursive: true });
  }
}

/** Number of answers until the service ended; null if it has made fewer syncs of the file than that. */
async function failSync(name: string, count: number, most = Number.POSITIVE_INFINITY): Promise<number | null> {
  await daemon.end("SIGTERM");
  const paths = [join(daemon.dataDir, name)];
  const before = snapshotOf(daemon.dataDir, join(home, "before"));
  try {
    const disk = new RecordedDisk(daemon.dataDir, before);
    const known = acknowledged.count;
    const recording = await serve({ paths, inject: [`${SYNCS}:error=EIO:when=${count}`] });
    const over = performance.now() + WORK_MS;
    const isOver = () => !daemon.runs || performance.now() > over || acknowledged.count > known + most;
    if (daemon.runs) await acknowledged.work(CLIENTS, chance, isOver);
    const ended = until("the service has exited", () => (daemon.runs ? null : [daemon.exitCode]), END_MS);
    const [status = null] = await ended.catch(() => []);
    await daemon.end("SIGKILL");
    disk.read(recording);
    if (disk.failures.length === 0) return null;
    const answers = acknowledged.count - known;
    expect(await lostIn(name, disk)).toEqual([]);
    expect(status).toBe(DISK_FAILED_STATUS);

    // Without a power loss the next start has all data, counts no crash, and writes the data that the disk may lack.
    const crashes = () => daemon.logged({ level: "warn" }).filter(({ ended_by }) => ended_by);
    const crashesBefore = crashes().length;
    const next = await serve({ paths });
    const restarted = performance.now() + RESTARTED_MS;
    await acknowledged.work(CLIENTS, chance, () => performance.now() > restarted);
    await daemon.end("SIGKILL");
    disk.read(next);
    expect(await lostIn(name, disk)).toEqual([]);
    expect(crashes()).toHaveLength(crashesBefore);
    return answers;
  } finally {
    rmSync(before, { recursive: true });
  }
}

test.each([
  [LOG, 50],
  [DATABASE, 2],
  [HEADS, 2],
])(
  "a failed sync of %s (number %i of its thread) ends the service, and no acknowledged write is lost",
  async (name, count) => {
    expect(await failSync(name, count)).toBeGreaterThan(10);
  },
);

// A sync of the log is one of each commit, the others are rare: they need as much work as there is time for.
test.runIf(LONG).each([
  [LOG, 100],
  [DATABASE, Number.POSITIVE_INFINITY],
  [HEADS, Number.POSITIVE_INFINITY],
])(
  "each failed sync of %s ends the service, and no acknowledged write is lost",
  async (name, most) => {
    let count = 0;
    const failNext = async () => {
      await daemon.end("SIGTERM");
      rmSync(daemon.dataDir, { recursive: true });
      snapshotOf(prepared, daemon.dataDir);
      acknowledged = new Acknowledged(daemon);
      return await failSync(name, count + 1, most);
    };
    while ((await failNext()) !== null) count++;
    console.log(`failed syncs: each of ${count} of ${name}`);
    expect(count).toBeGreaterThan(3);
  },
  3_600_000,
);

test("a failed sync of a drive fails its call, and nothing else", async () => {
  // Each thread's first sync fails.
  await serve({ paths: [join(daemon.dataDir, "rooms", kept, "drive")], inject: [`${SYNCS}:error=EIO:when=1`] });
  const write = (content: string) =>
    daemon.api("POST", "/v1/rooms/kept/drive/write", { path: "file", content }).then(({ status }) => status);
  const statuses: number[] = [];
  while (!statuses.includes(201) && !statuses.includes(200) && statuses.length < 64) statuses.push(await write("text"));
  expect(statuses[0]).toBe(500);
  expect(statuses.at(-1)).toBeLessThan(300);
  expect(daemon.runs).toBe(true);
  await daemon.room("other");
});

test("syncs of the database and its log that take 3 s do not block the event loop", async () => {
  const paths = [LOG, DATABASE].map((name) => join(daemon.dataDir, name));
  // The log's thread syncs by fdatasync; SQLite by fsync in the thread of checkpoints, and once at the start.
  const inject = ["fdatasync:delay_enter=3000000:when=20", "fsync:delay_enter=3000000:when=2"];
  const recording = await serve({ paths, calls: SYNCS, inject });
  const delayed = () =>
    new Set(
      readFileSync(recording, "latin1")
        .matchAll(/(fsync|fdatasync)(?=[^\n]*\(DELAYED\))/g)
        .map(([call]) => call),
    );
  const over = performance.now() + WORK_MS;
  let isOver = false;
  const waits: number[] = [];
  const watching = (async () => {
    while (!isOver) {
      const askedAt = performance.now();
      await fetch(`${daemon.url}/health`);
      waits.push(performance.now() - askedAt);
      await Bun.sleep(20);
      isOver = performance.now() > over || delayed().size === 2;
    }
  })();
  await acknowledged.work(CLIENTS, chance, () => isOver);
  await watching;
  expect(await daemon.end("SIGTERM")).toBe(0);
  expect(await acknowledged.brokenIn(daemon.dataDir, Number.POSITIVE_INFINITY)).toEqual([]);
  expect(Math.max(...waits)).toBeLessThan(2_000);
  expect([...delayed()].sort()).toEqual(["fdatasync", "fsync"]);
});
