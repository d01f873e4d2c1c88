/**
 * Many sandboxes that hibernate until they are needed: while they sleep they are files on a disk and rows of a list, and nothing else;
 * messages wake them, ten in parallel, each continues and receives its message once; and concurrent callers of one of them share one
 * resume. The sleepers are forks of one sandbox. This takes most of an hour if guests are emulated, so it runs if ROOMD_TEST_LONG is 1.
 * ROOMD_TEST_SLEEPERS is their number.
 */
import { lstatSync, readdirSync, readFileSync, statfsSync } from "node:fs";
import { join } from "node:path";
import { afterEach, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { timed } from "../../bench/load/sampling.ts";
import { Report } from "../../bench/report.ts";
import { tableOf } from "../../bench/table.ts";
import type { Json } from "../../harness/daemon.ts";
import { expectAtRest } from "../../harness/durability/invariants.ts";
import { LONG, until as untilWithin, withGuests } from "../../harness/guests.ts";
import { childrenOf, privateMemoryMib, processorSeconds, sessionsOf } from "../../harness/host-facts.ts";

const SLEEPERS = Number(process.env.ROOMD_TEST_SLEEPERS ?? 200);
/** Maximum number that run concurrently: the host has memory for them. */
const AT_ONCE = Math.min(10, SLEEPERS);
/** Woken and created one after the other, with nothing else running. */
const ALONE = Math.min(5, SLEEPERS);
/** Rounds in which as many sandboxes as are woken concurrently are created from the template, for comparison. */
const YARDSTICK_ROUNDS = 3;
const CALLERS = 10;
const ROOM = "dormitory";
const SOURCE = "source";
/** No fork has these: each gets the first that is free. */
const SOURCE_CID = 9999;
const YARDSTICK_CID = 9900;
/** Time for an agent to wait again. */
const IDLE_SECONDS = 10;
/** Whatever is waited for, with as many as run at the same time. */
const PATIENCE_MS = 180_000;
const PACE_MS = 200;
/** The daemon compares its rows with the host once a minute: this has one such comparison at least. */
const REST_MS = 60_000;
/** Generous: an unreleased sandbox is known to retain some 200 KiB, and the daemon itself varies by tens of MiB. */
const MAX_MIB = { each: 0.5, all: 96 };
/** Of one core, while all sleep. */
const MAX_PROCESSOR = 0.1;
const PAGE = 50;
/** Maximum disk usage of each, and the space that remains for others. */
const DISK_MIB = { each: 128, left: 2048 };
const MIB = 1024 ** 2;
const MINUTE_MS = 60_000;
const LONG_TIMEOUT_MS = 180 * MINUTE_MS;
const SLEPT = "sandbox.hibernated idle success";
const BY_MESSAGE = "sandbox.resume message success";
const BY_CALL = "sandbox.resume api success";

/**
 * Waits for messages and appends each to a file on the drive, with a number that only its own memory has: as soon as it is printed, and so
 * about when it is acknowledged; until then its sandbox is kept awake. Cached pages need not be saved with the rest: they are dropped
 * before the agent waits again.
 */
const AGENT = `#!/bin/sh
heard=0
while :; do
  room wait --timeout 1h | {
    IFS= read -r line && echo "$((heard + 1)) $line" >>"/mnt/drive/$ROOMD_AGENT_ID.heard"
  } || continue
  heard=$((heard + 1))
  echo 3 >/proc/sys/vm/drop_caches
done
`;

/** Starts it only in a copy, which gives it the copy's name: a process of the source would have the source's. */
const HOOK = `#!/bin/sh
[ "$ROOMD_RESTORED" = forked ] || exit 0
setsid /root/agent >/dev/null 2>&1 </dev/null &
`;

/** Single pages that are free go back to the host too, and none of them is saved: a fifth less on disk. */
const PREPARATION = `echo 0 >/sys/module/page_reporting/parameters/page_reporting_order
cat >/root/agent <<'END'
${AGENT}END
mkdir -p /etc/roomd/after-restore.d
cat >/etc/roomd/after-restore.d/10-agent <<'END'
${HOOK}END
chmod +x /root/agent /etc/roomd/after-restore.d/10-agent`;

const until = <T>(description: string, probe: () => T | Promise<T>) => untilWithin(description, probe, PATIENCE_MS);

/** The idle daemon's use of resources: private and resident memory, and its share of a core. */
interface Rest {
  private_mib: number;
  resident_mib: number;
  processor: number;
}

const reason = LONG ? whyNoRoom() : "they take most of an hour: ROOMD_TEST_LONG=1 runs them";
if (reason !== null) console.log(`sleepers: left out, because ${reason}`);

describe.skipIf(reason !== null)("long tests", { timeout: LONG_TIMEOUT_MS }, () => {
  withGuests(`${SLEEPERS} sandboxes that hibernate`, { env: { ROOMD_AUDIT_READS: "false" } }, (guests) => {
    const report = new Report("sleepers");
    const names = Array.from({ length: SLEEPERS }, (_, index) => `sleeper-${String(index + 1).padStart(3, "0")}`);
    const groups = names.flatMap((_, index) => (index % AT_ONCE === 0 ? [names.slice(index, index + AT_ONCE)] : []));
    /** The words sent to each, in order, and the expected events of each that no call caused. */
    const sent = new Map<string, string[]>(names.map((name) => [name, []]));
    const expected = new Map<string, string[]>(names.map((name) => [name, []]));
    let drive = "";
    let before: Rest;

    const path = (name: string, verb = "") => `/v1/rooms/${ROOM}/sandboxes/${name}${verb}`;
    const range = (count: number) => Array.from({ length: count }, (_, index) => index);

    beforeAll(async () => {
      const { room_uid } = await guests.daemon.room(ROOM);
      drive = join(guests.daemon.dataDir, "rooms", room_uid, "drive");
    });

    // Each test continues from the end of the previous one.
    let failed = "";
    afterEach(({ task }) => {
      if (task.result?.state === "fail") failed ||= task.name;
    });
    beforeEach((context) => context.skip(failed !== "", `they failed before: ${failed}`));

    test("are forked from a hibernated one, and hibernate when idle", async () => {
      const { daemon } = guests;
      await daemon.sandbox(ROOM, SOURCE, SOURCE_CID);
      await daemon.sh(ROOM, SOURCE, PREPARATION);
      // Memory that the daemon allocates for its first guests is retained.
      await created(AT_ONCE);
      await daemon.ok("POST", path(SOURCE, "/hibernate"));
      before = await atRest();
      const forks: number[] = [];
      for (const group of groups) {
        forks.push(await timed(() => fork(group)));
        await Promise.all(group.map((name) => tell(name, "hello")));
        await asleep(group);
        for (const name of group) expected.get(name)?.push(SLEPT);
      }
      report.add(`fork_x${AT_ONCE}`, "ms", forks);
    });

    test("use no process, memory or CPU while hibernated, and are all listed", async () => {
      const { daemon } = guests;
      const rest = await atRest();
      const change = (metric: keyof Rest, digits: number) =>
        `${before[metric].toFixed(digits)} → ${rest[metric].toFixed(digits)}`;
      console.log(
        `the daemon without sleepers → with ${SLEEPERS}: ${change("private_mib", 1)} MiB of its own, ` +
          `${change("resident_mib", 1)} MiB resident, ${change("processor", 4)} of a core over ${REST_MS / 1000} s`,
      );
      expect(rest.private_mib - before.private_mib).toBeLessThan(SLEEPERS * MAX_MIB.each + MAX_MIB.all);
      expect(rest.processor).toBeLessThan(MAX_PROCESSOR);
      const items = await listed(`/v1/rooms/${ROOM}/sandboxes?state=hibernated&limit=${PAGE}`);
      expect(items.map(({ agent_id }) => agent_id).sort()).toEqual([...names, SOURCE].sort());
      expect(await listed(`/v1/rooms/${ROOM}/sandboxes?limit=${PAGE}`)).toEqual(items);
      const sleepers = items.filter(({ agent_id }) => agent_id !== SOURCE);
      const own = sleepers.map(({ sandbox_id }) => ownBytes(join(daemon.dataDir, "sandboxes", sandbox_id)) / MIB);
      report.add("on_disk_each", "MiB", own);
    });

    test(`are woken by messages, ${AT_ONCE} at a time; each receives its own once, and hibernates again`, async () => {
      const woken: number[] = [];
      const made: number[] = [];
      const every = Math.ceil(groups.length / YARDSTICK_ROUNDS);
      for (const [index, group] of groups.entries()) {
        if (index % every === 0) made.push(...(await created(AT_ONCE)));
        woken.push(...(await Promise.all(group.map((name) => timed(() => tell(name, `word for ${name}`))))));
        await asleep(group);
        for (const name of group) expected.get(name)?.push(BY_MESSAGE, SLEPT);
      }
      report.add(`create_x${AT_ONCE}`, "ms", made);
      report.add(`wake_x${AT_ONCE}`, "ms", woken, `create_x${AT_ONCE}`);
      allHeard();
      await asExpected();
      await expectAtRest(guests.daemon);
    });

    test("are woken one by one, compared with creating one", async () => {
      const woken: number[] = [];
      const made: number[] = [];
      for (const name of names.slice(0, ALONE)) {
        made.push(...(await created(1)));
        woken.push(await timed(() => tell(name, "alone")));
        await asleep([name]);
        expected.get(name)?.push(BY_MESSAGE, SLEPT);
      }
      report.add("create_alone", "ms", made);
      report.add("wake_alone", "ms", woken, "create_alone");
      allHeard();
      await asExpected();
    });

    test(`are resumed once for ${CALLERS} concurrent callers of one`, async () => {
      const { daemon } = guests;
      const name = names.at(-1) ?? "";
      const numbered = (index: number) => daemon.sh(ROOM, name, `echo ${index} of $(hostname)`);
      const answers = await Promise.all(range(CALLERS).map(numbered));
      expect(answers).toEqual(range(CALLERS).map((index) => `${index} of ${name}`));
      await asleep([name]);
      expected.get(name)?.push(BY_CALL, SLEPT);
      await asExpected();
      // Half of them by a message.
      const calls = range(CALLERS / 2);
      await Promise.all(calls.flatMap((index) => [tell(name, `concurrent ${index}`), numbered(index)]));
      await asleep([name]);
      const expectedWords = calls.map((index) => `concurrent ${index}`);
      expect(heard(name).slice(-calls.length).map(wordOf).sort()).toEqual(expectedWords);
      expect(heard(name)).toHaveLength(sent.get(name)?.length ?? 0);
      // One resume, of whichever came first.
      const events = (await unasked()).get(name) ?? [];
      expected.get(name)?.push(events.at(expected.get(name)?.length ?? 0) === BY_CALL ? BY_CALL : BY_MESSAGE, SLEPT);
      await asExpected();
    });

    test("leave nothing when their room is destroyed", async () => {
      const { daemon } = guests;
      console.log(tableOf(report.measures()));
      await daemon.ok("DELETE", `/v1/rooms/${ROOM}?drive=delete`);
      await expectAtRest(daemon);
      await daemon.end("SIGTERM");
      expect(daemon.leftovers()).toEqual([]);
    });

    async function fork(group: readonly string[]): Promise<void> {
      const { daemon } = guests;
      const agents = group.map((agent_id) => ({ agent_id }));
      const made: Json = await daemon.ok("POST", path(SOURCE, "/fork"), { agents });
      expect(made.items.filter(({ problem }: Json) => problem !== null)).toEqual([]);
      // A fork call waits for a minute at most.
      await all(group, "running");
      const lifecycle = { idle_after_seconds: IDLE_SECONDS, on_idle: "hibernate", wake_on: ["message", "api"] };
      await Promise.all(group.map((name) => daemon.ok("PATCH", path(name), { lifecycle })));
      // The forks keep the parts of it that they need.
      await daemon.ok("DELETE", `/v1/rooms/${ROOM}/snapshots/${made.snapshot_id}`);
    }

    /**
     * Creates sandboxes from the template concurrently: the duration of each, from the call until it has written to the drive, like a woken
     * one.
     */
    async function created(count: number): Promise<number[]> {
      const create = async (index: number) => {
        await guests.daemon.sandbox(ROOM, `new-${index}`, YARDSTICK_CID + index);
        await all([`new-${index}`], "running");
        await guests.daemon.sh(ROOM, `new-${index}`, "echo here >/mnt/drive/$ROOMD_AGENT_ID.here");
      };
      const samples = await Promise.all(range(count).map((index) => timed(() => create(index))));
      await Promise.all(range(count).map((index) => guests.daemon.ok("DELETE", path(`new-${index}`))));
      return samples;
    }

    /** Sends it a word; resolves once its agent has written that down. */
    async function tell(name: string, word: string): Promise<void> {
      const words = sent.get(name) ?? [];
      words.push(word);
      const message = { source: "operator", destination: name, payload: word };
      await guests.daemon.ok("POST", `/v1/rooms/${ROOM}/messages`, message);
      await until(`${name} has received message ${word}`, () => heard(name).length >= words.length);
    }

    function heard(name: string): string[] {
      try {
        return readFileSync(join(drive, `${name}.heard`), "utf8")
          .split("\n")
          .slice(0, -1);
      } catch {
        return [];
      }
    }

    /** Each has received its messages, in order and once, in a program that was never restarted. */
    function allHeard(): void {
      const known = names.map((name) => heard(name).map((line) => `${line.split(" ")[0]} ${wordOf(line)}`));
      expect(known).toEqual(names.map((name) => sent.get(name)?.map((word, index) => `${index + 1} ${word}`)));
    }

    const asleep = (some: readonly string[]) => all(some, "hibernated");

    async function all(some: readonly string[], state: string): Promise<void> {
      for (const name of some) {
        await until(`${name} is ${state}`, async () => {
          if ((await guests.daemon.ok("GET", path(name))).state === state) return true;
          await Bun.sleep(PACE_MS);
          return false;
        });
      }
    }

    /** The daemon's use of resources while it gets no calls and no guest runs. */
    async function atRest(): Promise<Rest> {
      const { daemon } = guests;
      await expectAtRest(daemon);
      const usedBefore = processorSeconds(daemon.pid);
      const startedAt = performance.now();
      await Bun.sleep(REST_MS);
      const processor = (processorSeconds(daemon.pid) - usedBefore) / ((performance.now() - startedAt) / 1000);
      expect(sessionsOf(daemon)).toEqual([]);
      expect(childrenOf(daemon.pid)).toEqual([]);
      const status = readFileSync(`/proc/${daemon.pid}/status`, "utf8");
      const resident_mib = Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
      return { private_mib: privateMemoryMib(daemon.pid), resident_mib, processor };
    }

    /** Events of each are recorded a moment after they occur. */
    async function asExpected(): Promise<void> {
      const isRecorded = async () => {
        const events = await unasked();
        if (names.every((name) => (events.get(name)?.length ?? 0) >= (expected.get(name)?.length ?? 0))) return true;
        await Bun.sleep(PACE_MS);
        return false;
      };
      await until("the outcomes are recorded", isRecorded);
      expect(await unasked()).toEqual(expected);
    }

    /** Events of each sandbox that no call caused, by agent, oldest first. */
    async function unasked(): Promise<Map<string, string[]>> {
      const events = new Map<string, string[]>(names.map((name) => [name, []]));
      const records = await listed(`/v1/rooms/${ROOM}/audit?event=sandbox.&order=asc&limit=1000`);
      for (const { actor, agent_id, event, details, outcome } of records) {
        if (actor.type === "system") events.get(agent_id)?.push(`${event} ${details.reason} ${outcome}`);
      }
      return events;
    }

    /** All pages of a list. */
    async function listed(list: string): Promise<Json[]> {
      const items: Json[] = [];
      let cursor: string | null = "";
      while (cursor !== null) {
        const from: string = cursor && `&cursor=${encodeURIComponent(cursor)}`;
        const page: Json = await guests.daemon.ok("GET", list + from);
        items.push(...page.items);
        cursor = page.next_cursor;
      }
      return items;
    }
  });
});

/** Why that many do not fit on this host, or null. */
function whyNoRoom(): string | null {
  // The file system of test daemons' data.
  const { bavail, bsize } = statfsSync("/tmp");
  const [free, need] = [Math.floor((bavail * bsize) / MIB), SLEEPERS * DISK_MIB.each + DISK_MIB.left];
  return free >= need ? null : `${SLEEPERS} need ${need} MiB of disk, and there are ${free} MiB`;
}

/** The words of a received line: after its number, its sender and its id. */
function wordOf(line: string): string {
  return line.split(" ").slice(3).join(" ");
}

/** Disk usage of the directory's files that are not hard-linked elsewhere. */
function ownBytes(directory: string): number {
  const files = readdirSync(directory, { recursive: true, encoding: "utf8" }).map((name) =>
    lstatSync(join(directory, name)),
  );
  return files.filter((file) => file.isFile() && file.nlink === 1).reduce((sum, { blocks }) => sum + blocks * 512, 0);
}
