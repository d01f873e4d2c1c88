/**
 * A daemon at work on a file system over a device that logs its writes (dm-log-writes), and the states of the device that remain after a
 * power loss: mounted, each has everything that was acknowledged or read. The argument is the type of the file system.
 */
import { execFileSync } from "node:child_process";
import { closeSync, openSync } from "node:fs";
import { TestDaemon } from "../../harness/daemon.ts";
import { Acknowledged } from "../../harness/durability/acknowledged.ts";
import { WriteLog } from "../../harness/durability/write-log.ts";
import { Chance } from "../../harness/random.ts";

const STATES = 20;
/** Number of answers to the workload, limited by a time: an emulated host is slow. */
const FACTS = 200;
const WORK_MS = 300_000;
const MARK_MS = 300;
const CLIENTS = 3;

const FILE_SYSTEMS: Record<string, { make: string; check: string }> = {
  ext4: { make: "mkfs.ext4 -q -E nodiscard", check: "e2fsck -fn" },
  xfs: { make: "mkfs.xfs -q -K", check: "xfs_repair -n" },
};

const type = process.argv[2] ?? "";
const { make, check } = FILE_SYSTEMS[type] ?? { make: "false", check: "false" };
const shell = (command: string) => execFileSync("sh", ["-ec", command], { encoding: "utf8", stdio: "pipe" }).trim();

const DISKS = "/disks";
const AT = `${DISKS}/at`;
const LEFT = `${DISKS}/left`;
shell(`cd ${DISKS}; rm -f *.img; truncate -s 512M data.img; truncate -s 3G log.img; mkdir -p ${AT}`);
const [device, log] = ["data", "log"].map((name) => shell(`losetup --find --show ${DISKS}/${name}.img`));
shell(`${make} ${device}; cp --sparse=always ${DISKS}/data.img ${DISKS}/base.img`);
shell(`dmsetup create writes --table "0 $(blockdev --getsz ${device}) log-writes ${device} ${log}"`);

/** A mark has the time from before it: whatever was acknowledged until then is on the device by then. */
const mark = () => Bun.spawn(["dmsetup", "message", "writes", "0", "mark", String(Date.now() / 1000)]).exited;

/** The faults in a copy of a disk's files; the file system recovers when it is mounted, and is clean afterwards. */
async function brokenOn(disk: string, time: number): Promise<string[]> {
  const image = `${DISKS}/${disk}.img`;
  shell(`rm -rf ${LEFT}; mount -o loop ${image} ${AT}; cp -a ${AT} ${LEFT}; umount ${AT}; ${check} ${image}`);
  return await acknowledged.brokenIn(LEFT, time);
}

const chance = new Chance();
const daemon = await TestDaemon.start({
  env: { ROOMD_LIMITS_DISK_FREE_MIB: "16", ROOMD_LIMITS_DISK_RESERVE_MIB: "16" },
  prepare: ({ dataDir }) => void shell(`mount /dev/mapper/writes ${dataDir}`),
});
const acknowledged = new Acknowledged(daemon);
try {
  await mark();
  const over = performance.now() + WORK_MS;
  const isOver = () => acknowledged.count >= FACTS || performance.now() > over;
  const working = acknowledged.work(CLIENTS, chance, isOver);
  while (!isOver()) {
    await mark();
    await Bun.sleep(MARK_MS);
  }
  await working;
  await daemon.end("SIGKILL");
  await mark();
  shell(`umount ${daemon.dataDir}; dmsetup remove writes; losetup -d ${device}; sync`);

  const writes = new WriteLog(String(log));
  const marks = writes.entries.flatMap((entry, index) =>
    entry.mark.startsWith("1") ? [{ index, time: Number(entry.mark) }] : [],
  );
  const [first, last] = [marks[0]?.index ?? 0, marks.at(-1)?.index ?? 0];
  const states = Array.from({ length: STATES }, () => chance.whole(first, last)).sort((a, b) => a - b);
  const broken: string[] = [];
  const base = openSync(`${DISKS}/base.img`, "r+");
  let applied = writes.lastFlush(first);
  writes.apply(base, 0, applied);
  shell(`cp --sparse=always ${DISKS}/base.img ${DISKS}/state.img`);
  const missed = (await brokenOn("state", Number.POSITIVE_INFINITY)).length;
  for (const [state, after] of states.entries()) {
    writes.apply(base, applied, writes.lastFlush(after));
    applied = writes.lastFlush(after);
    shell(`cp --sparse=always ${DISKS}/base.img ${DISKS}/state.img`);
    const left = openSync(`${DISKS}/state.img`, "r+");
    writes.crash(left, after, chance);
    closeSync(left);
    const time = marks.findLast(({ index }) => index <= after)?.time ?? 0;
    try {
      const found = await brokenOn("state", time);
      broken.push(...found.map((each) => `state ${state}, after entry ${after}: ${each}`));
    } catch (error) {
      broken.push(`state ${state}, after entry ${after}: ${error}`);
    }
  }
  closeSync(base);
  const whole = await brokenOn("data", Number.POSITIVE_INFINITY);
  const counts = { facts: acknowledged.count, entries: writes.entries.length, flushes: writes.flushes.length };
  console.log(
    `result: ${type} ${JSON.stringify({ seed: chance.seed, states: states.length, missed, ...counts, broken: [...broken, ...whole] })}`,
  );
  shell(`losetup -d ${log}`);
} finally {
  await daemon.stop();
}
