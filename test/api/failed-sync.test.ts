/**
 * Syncs that fail, or take seconds, one kind of file after another. The kernel drops the pages that it could not write, and reports that once: the
 * service ends with status 74 before it acknowledges anything more, and a loss of power then takes nothing that was acknowledged.
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Acknowledged } from "../harness/acknowledged.ts";
import { TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";
import { Chance } from "../harness/random.ts";
import { RECORDED_PROGRAM, RecordedDisk, recorder, snapshotOf } from "../harness/recorded-disk.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";
const WORK_MS = LONG ? 20_000 : 8_000;
const SYNCS = "fsync,fdatasync";

interface Recorded {
  daemon: TestDaemon;
  acknowledged: Acknowledged;
  /** Where copies of data_dir have place. */
  home: string;
  /** A file of data_dir after a loss of power: no byte of it that was not synced. */
  leastOf(): Buffer;
}

/** Runs `work` on a daemon whose syncs of one path have a fault. */
async function withFault(path: (daemon: TestDaemon) => string, fault: string, work: (at: Recorded) => Promise<void>) {
  const home = mkdtempSync("/tmp/roomd-f-");
  const daemon = await TestDaemon.start({ program: RECORDED_PROGRAM, env: { ROOMD_AUDIT_HEADS_INTERVAL: "1s" } });
  try {
    await daemon.room("kept");
    const file = path(daemon);
    await daemon.end("SIGTERM");
    const before = snapshotOf(daemon.dataDir, join(home, "before"));
    const recording = join(home, "recording");
    daemon.env.DISK_RECORDER = recorder({ to: recording, paths: [file], inject: `${SYNCS}:${fault}` });
    await daemon.serve();
    delete daemon.env.DISK_RECORDER;
    const leastOf = () => {
      const disk = new RecordedDisk(daemon.dataDir, before);
      disk.read(recording);
      expect(disk.failures.length).toBeGreaterThan(0);
      return disk.leastOf(file.slice(daemon.dataDir.length + 1));
    };
    await work({ daemon, acknowledged: new Acknowledged(daemon), home, leastOf });
  } finally {
    await daemon.stop();
    rmSync(home, { recursive: true, force: true });
  }
}

const inData = (name: string) => (daemon: TestDaemon) => join(daemon.dataDir, name);
/** The log is synced at the start; the others are not. */
const counts: Record<string, number[]> = LONG
  ? { "roomd.db-wal": [2, 20, 50, 100, 200], "roomd.db": [1, 2, 3, 5, 8], "audit-heads.ndjson": [1, 2, 3] }
  : { "roomd.db-wal": [50], "roomd.db": [2], "audit-heads.ndjson": [2] };

test.each(Object.entries(counts).flatMap(([name, each]) => each.map((count) => [name, count] as const)))(
  "a sync of %s that fails, its thread's number %i, ends the service, and no answer is lost",
  (name, count) =>
    withFault(inData(name), `error=EIO:when=${count}`, async ({ daemon, acknowledged, home, leastOf }) => {
      const over = performance.now() + WORK_MS;
      await acknowledged.work(4, new Chance(), () => !daemon.runs || performance.now() > over);
      const status = await until("the service has ended", () => (daemon.runs ? null : [daemon.exitCode]), 2_000).catch(
        () => [],
      );
      await daemon.end("SIGKILL");
      const left = snapshotOf(daemon.dataDir, join(home, "left"));
      writeFileSync(join(left, name), leastOf());
      rmSync(join(left, "roomd.db-shm"), { force: true });
      expect(await acknowledged.brokenIn(left, Number.POSITIVE_INFINITY)).toEqual([]);
      expect([status, acknowledged.count > 10]).toEqual([[74], true]);
      expect(daemon.log).toContain("the disk has failed");
      // Without a loss of power the next start has all of it too, and counts no crash.
      await daemon.serve();
      expect(daemon.log).not.toContain("crashed");
      await daemon.end("SIGTERM");
      const copy = join(home, "copy");
      cpSync(daemon.dataDir, copy, { recursive: true, verbatimSymlinks: true });
      expect(await acknowledged.brokenIn(copy, Number.POSITIVE_INFINITY)).toEqual([]);
    }),
);

test("a sync of a drive that fails fails its call, and nothing else", async () => {
  let drive = "";
  const find = (daemon: TestDaemon) => {
    drive = Array.from(new Bun.Glob("rooms/*/drive").scanSync({ cwd: daemon.dataDir, onlyFiles: false }))[0] ?? "";
    return join(daemon.dataDir, drive);
  };
  await withFault(find, "error=EIO:when=1", async ({ daemon }) => {
    const write = (content: string) =>
      daemon.api("POST", "/v1/rooms/kept/drive/write", { path: "file", content }).then(({ status }) => status);
    // Each thread's first sync fails.
    const statuses: number[] = [];
    while (!statuses.includes(201) && !statuses.includes(200) && statuses.length < 64)
      statuses.push(await write("text"));
    expect(statuses[0]).toBe(500);
    expect(statuses.at(-1)).toBeLessThan(300);
    expect(daemon.runs).toBe(true);
    await daemon.room("other");
  });
});

test.each(["roomd.db-wal", "roomd.db"])("syncs of %s that take 3 s delay no turn of the event loop", (name) =>
  withFault(
    inData(name),
    `delay_enter=3000000:when=${name === "roomd.db" ? "1+" : "20"}`,
    async ({ daemon, acknowledged }) => {
      const over = performance.now() + WORK_MS;
      const waits: number[] = [];
      const watching = (async () => {
        while (performance.now() < over) {
          const askedAt = performance.now();
          await fetch(`${daemon.url}/health`);
          waits.push(performance.now() - askedAt);
          await Bun.sleep(20);
        }
      })();
      await acknowledged.work(4, new Chance(), () => performance.now() > over);
      await watching;
      expect(await daemon.end("SIGTERM")).toBe(0);
      expect(await acknowledged.brokenIn(daemon.dataDir, Number.POSITIVE_INFINITY)).toEqual([]);
      expect(Math.max(...waits)).toBeLessThan(2_000);
    },
  ),
);
