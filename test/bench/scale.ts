/**
 * Benchmark of one daemon with up to 900 sandboxes. Their guests are simulated (played-guests.ts), the daemon is real: links, handshakes,
 * executions, metering, metrics and audit are all its own. Of each size: the daemon's resource use while they are idle, the latency of its
 * callers at 2,000 calls per second, and the time from a kill of the daemon until its successor has adopted all. Guests and callers share
 * the cores with the daemon, so the latencies are higher than on a dedicated host.
 */
import { spawn } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { usageOfProcess } from "../../daemon/host/usage.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import type { SteadyAnswers, SteadyKind, SteadyLoad } from "./load/steady-load.ts";
import type { Bench, Report } from "./report.ts";
import { ScaleGuests } from "./scale-guests.ts";

const SIZES = [0, 10, 100, 300, 900] as const;
const PER_SECOND = 2000;
const LOAD_SECONDS = 17;
/** Whatever follows a start is over by then: notes of adoptions are forgotten, and drives measured. */
const SETTLE_MS = 15_000;
/** Work that is due once a minute happens once in it. */
const IDLE_MS = 60_000;
const MIB = 1024 ** 2;
/** One guest in `BUSY_SHARE` sends a message per second to its room, and one in `BUSY_SHARE` writes output that is followed. */
const BUSY_SHARE = 10;
const LIMIT_MS = 50;

interface Counts {
  cpu_seconds: number;
  commits: number;
  records: number;
}

/** `count` is the most guests. */
export async function benchScale({ report, count = 900, start, watch }: Bench): Promise<void> {
  const daemon = await start({
    guests: false,
    env: {
      ROOMD_ACCELERATION: "tcg",
      ROOMD_VSOCK_TRANSPORT: "vhost-user",
      ROOMD_POOL_SIZE: "0",
      // Each call has a separate record, which is the maximum.
      ROOMD_AUDIT_RECORDS_PER_DAY: "100000000",
    },
  });
  await daemon.room("scale-0");
  await using guests = new ScaleGuests(daemon);
  for (const size of SIZES.filter((each) => each <= count)) {
    if (size > 0) await guests.become(size);
    await measureIdle(report, daemon, size);
    {
      await using _ = await watch(daemon);
      await measureLoad(report, daemon, guests, size);
    }
    if (size === 0) continue;
    const { readyMs, adoptedMs } = await guests.restart();
    report.add(`ready_after_kill_${size}`, "ms", [readyMs]);
    report.add(`all_adopted_${size}`, "ms", [adoptedMs]);
  }
}

async function measureIdle(report: Report, daemon: TestDaemon, size: number): Promise<void> {
  await sleep(SETTLE_MS);
  const before = await countsOf(daemon);
  await sleep(IDLE_MS);
  const after = await countsOf(daemon);
  const perSecond = (kind: keyof Counts) => [((after[kind] - before[kind]) / IDLE_MS) * 1000];
  report.add(`idle_cpu_${size}`, "%", [(perSecond("cpu_seconds")[0] ?? 0) * 100]);
  report.add(`idle_commits_${size}`, "1/s", perSecond("commits"));
  report.add(`idle_records_${size}`, "1/s", perSecond("records"));
  report.add(`resident_${size}`, "MiB", [usageOfProcess(daemon.pid).resident_bytes / MIB]);
  report.add(`descriptors_${size}`, "1", [readdirSync(`/proc/${daemon.pid}/fd`).length]);
  report.add(`threads_${size}`, "1", [readdirSync(`/proc/${daemon.pid}/task`).length]);
}

async function measureLoad(report: Report, daemon: TestDaemon, guests: ScaleGuests, size: number): Promise<void> {
  const busy = Math.floor(size / BUSY_SHARE);
  guests.chat(busy);
  const before = await countsOf(daemon);
  const startedAt = performance.now();
  const { ms, refused, followed_bytes } = await loaded(daemon, size, busy);
  const seconds = (performance.now() - startedAt) / 1000;
  const after = await countsOf(daemon);
  guests.chat(0);
  if (refused > 0) throw new Error(`${refused} calls were refused`);
  for (const kind of ["get", "message", "exec"] satisfies SteadyKind[]) {
    if (ms[kind].length === 0 || (kind === "exec" && size === 0)) continue;
    const yardstick = `load_${kind}_${kind === "exec" ? SIZES[1] : SIZES[0]}`;
    const name = `load_${kind}_${size}`;
    report.add(name, "ms", ms[kind], name === yardstick ? undefined : yardstick, { of: "p99", most: LIMIT_MS });
  }
  report.add(`load_cpu_${size}`, "%", [((after.cpu_seconds - before.cpu_seconds) / seconds) * 100]);
  report.add(`load_commits_${size}`, "1/s", [(after.commits - before.commits) / seconds]);
  report.add(`load_records_${size}`, "1/s", [(after.records - before.records) / seconds]);
  if (busy > 0) report.add(`load_followed_${size}`, "MB/s", [followed_bytes / 1e6 / seconds]);
}

/** Runs the load in a separate process. */
async function loaded(daemon: TestDaemon, size: number, followed: number): Promise<SteadyAnswers> {
  const load: SteadyLoad = {
    ...{ url: daemon.url, key: daemon.apiKey, per_second: PER_SECOND, seconds: LOAD_SECONDS },
    ...{ guests: size, followed },
  };
  const argv = [join(import.meta.dirname, "load/steady-load.ts"), JSON.stringify(load)];
  const child = spawn(process.execPath, argv, { stdio: ["ignore", "pipe", "inherit"] });
  let output = "";
  for await (const text of child.stdout.setEncoding("utf8")) output += text;
  return JSON.parse(output) as SteadyAnswers;
}

async function countsOf(daemon: TestDaemon): Promise<Counts> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  const figure = (name: string) => {
    const value = new RegExp(`^${name} (\\S+)$`, "m").exec(text)?.[1];
    if (value === undefined) throw new Error(`/metrics says nothing of ${name}`);
    return Number(value);
  };
  return {
    cpu_seconds: processorSeconds(daemon.pid),
    commits: figure("roomd_database_commits_total"),
    records: figure("roomd_audit_records_total"),
  };
}

/** Finer than clock ticks: nanoseconds that its threads ran, of each /proc/<pid>/task/<tid>/schedstat. */
function processorSeconds(pid: number): number {
  const task = `/proc/${pid}/task`;
  return readdirSync(task).reduce((sum, tid) => {
    const [ran = "0"] = readFileSync(join(task, tid, "schedstat"), "utf8").split(" ");
    return sum + Number(ran) / 1e9;
  }, 0);
}
