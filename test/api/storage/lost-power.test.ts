/** Power loss at any moment of a daemon's work: acknowledged and read data survives it, and nothing is half written. */
import { mkdtempSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { Acknowledged } from "../../harness/durability/acknowledged.ts";
import { RECORDED_PROGRAM, RecordedDisk, recorder, snapshotOf } from "../../harness/durability/recorded-disk.ts";
import { Chance } from "../../harness/random.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";
/** One of `startedEach` states is also started by a daemon. */
const { workMs, states, startedEach } = LONG
  ? { workMs: 20_000, states: 300, startedEach: 10 }
  : { workMs: 3_000, states: 16, startedEach: 8 };

/** One checkpoint takes no longer. */
const CHECKPOINT_MS = 100;

test(
  `each of ${states} states after a power loss has all acknowledged and all read data`,
  async () => {
    const chance = new Chance();
    console.log(`lost power: ${states} states, ROOMD_TEST_SEED=${chance.seed}`);
    const home = mkdtempSync("/tmp/roomd-p-");
    const daemon = await TestDaemon.start({ program: RECORDED_PROGRAM });
    try {
      await daemon.end("SIGTERM");
      const before = snapshotOf(daemon.dataDir, join(home, "before"));
      const recording = join(home, "recording");
      daemon.env.DISK_RECORDER = recorder({ to: recording });
      await daemon.serve();
      const acknowledged = new Acknowledged(daemon);
      const until = performance.now() + workMs;
      const written = () => statSync(join(daemon.dataDir, "roomd.db")).mtimeMs;
      const unwritten = written();
      let first = unwritten;
      // At least until a part of the log is written into the database, and then another: the first of them is whole by then.
      const isOver = () => {
        if (first === unwritten) first = written();
        return performance.now() > until && first > unwritten && written() > first + CHECKPOINT_MS;
      };
      await acknowledged.work(4, chance, isOver);
      await daemon.end("SIGKILL");
      delete daemon.env.DISK_RECORDER;

      const disk = new RecordedDisk(daemon.dataDir, before);
      disk.read(recording);
      console.log(`lost power: ${acknowledged.count} facts, ${disk.length} changes, ${disk.syncs.length} syncs`);
      expect([acknowledged.count > 100, disk.syncs.length > 100, disk.changesOf("roomd.db") > 10]).toEqual([
        true,
        true,
        true,
      ]);
      // Before the first sync that matters nothing of the work is there: it would be missed.
      const empty = join(home, "empty");
      disk.crash(0, chance, empty);
      expect((await acknowledged.brokenIn(empty, Number.POSITIVE_INFINITY)).length).toBeGreaterThan(100);
      for (let state = 0; state < states; state++) {
        const after = state % 2 === 0 ? chance.pick(disk.syncs) : chance.whole(0, disk.length - 1);
        const time = disk.times[after + 1] ?? Number.POSITIVE_INFINITY;
        const isStarted = state % startedEach === 0;
        const left = isStarted ? daemon.dataDir : join(home, `state-${state}`);
        rmSync(left, { recursive: true, force: true });
        disk.crash(after, chance, left);
        if (isStarted) {
          await daemon.serve();
          await daemon.end("SIGTERM");
        }
        expect(await acknowledged.brokenIn(left, time), `state ${state}, after change ${after}`).toEqual([]);
        if (!isStarted) rmSync(left, { recursive: true });
      }
    } finally {
      await daemon.stop();
      rmSync(home, { recursive: true, force: true });
    }
  },
  LONG ? 1_800_000 : 120_000,
);
