/**
 * Shared parts of tests with real guests: a daemon for a group of tests, the output shown when one of them fails, waiting for a condition,
 * and the host processes of a guest.
 */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { basename, join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, test } from "vitest";
import { type Json, TestDaemon, type TestDaemonOptions, whyNoGuests } from "./daemon.ts";

/** Whether tests run in full length; `bun run test:long` sets it. */
export const LONG = process.env.ROOMD_TEST_LONG === "1";
/** Length of each log's tail shown when a test fails. */
const SHOWN_CHARACTERS = 6000;
const POLL_MS = 10;

export interface Guests {
  /** The group's daemon; there from the first test on. */
  readonly daemon: TestDaemon;
  /** A guest_cid that no other test of the group has. */
  cid(): number;
}

/** A group of tests with their own daemon, skipped with its reason if guests cannot run. */
export function withGuests(title: string, options: TestDaemonOptions, tests: (guests: Guests) => void): void {
  const reason = whyNoGuests();
  if (reason !== null) console.log(`${title}: left out, because ${reason}`);
  describe.skipIf(reason !== null)(title, () => {
    let daemon: TestDaemon | null = null;
    let nextCid = 9100;
    beforeAll(async () => {
      daemon = await startGuestDaemon(options);
    });
    afterEach(({ task }) => {
      if (daemon && task.result?.state === "fail") showLogs(daemon, task.name);
    });
    afterAll(() => daemon?.stop());
    tests({
      get daemon() {
        if (!daemon) throw new Error("the group's daemon did not start");
        return daemon;
      },
      cid: () => nextCid++,
    });
  });
}

/** A daemon whose sandboxes start on request: pooled machines would take the cores that are measured. */
export function startGuestDaemon(options: TestDaemonOptions = {}): Promise<TestDaemon> {
  return TestDaemon.start({ guests: true, ...options, env: { ROOMD_POOL_SIZE: "0", ...options.env } });
}

/** A test that damages its daemon, and so has its own. */
export function testAlone(
  title: string,
  options: TestDaemonOptions,
  run: (daemon: TestDaemon) => Promise<void>,
  timeoutMs?: number,
): void {
  const reason = whyNoGuests();
  if (reason !== null) console.log(`${title}: left out, because ${reason}`);
  test.skipIf(reason !== null)(
    title,
    async () => {
      await using daemon = await startGuestDaemon(options);
      try {
        await run(daemon);
      } catch (error) {
        showLogs(daemon, title);
        throw error;
      }
    },
    timeoutMs,
  );
}

/** Logs that a test runs shortened, and how to run it in full. */
export function shortOrLong<T>(label: string, short: T, long: T): T {
  if (!LONG) console.log(`${label}: ${short} instead of ${long}; ROOMD_TEST_LONG=1 runs it in full`);
  return LONG ? long : short;
}

/** Resolves to the first answer of `probe` that is neither null, undefined nor false. */
export async function until<T>(
  description: string,
  probe: () => T | Promise<T>,
  deadlineMs = 15_000,
): Promise<Exclude<T, null | undefined | false>> {
  const deadline = performance.now() + deadlineMs;
  for (;;) {
    const found = await probe();
    if (found !== null && found !== undefined && found !== false) {
      return found as Exclude<T, null | undefined | false>;
    }
    if (performance.now() > deadline) throw new Error(`${description}: not so after ${deadlineMs} ms`);
    await Bun.sleep(POLL_MS);
  }
}

/** The sandbox's record as soon as it is in this state. */
export async function untilState(daemon: TestDaemon, room: string, name: string, state: string): Promise<Json> {
  return await until(`${room}/${name} is ${state}`, async () => {
    const { items } = await daemon.ok("GET", `/v1/rooms/${room}/sandboxes?state=${state}`);
    return items.find((item: Json) => item.agent_id === name || item.sandbox_id === name);
  });
}

export type Part = "qemu" | "virtiofsd" | "vsock";

export const PROGRAMS: Record<Part, RegExp> = {
  qemu: /^qemu-system/,
  virtiofsd: /^(virtiofsd|ld-linux)/,
  vsock: /^vhost-device-vsock/,
};

/** Processes of this daemon's guests that play this part, oldest first; of one sandbox when it is named. */
export function processesOf(daemon: TestDaemon, part: Part, sandboxId = ""): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number)
    .filter((pid) => {
      const argv = commandLineOf(pid);
      const own = argv.some((word) => word.includes(join(daemon.runtimeDir, "g", sandboxId)));
      return own && PROGRAMS[part].test(basename(argv[0] ?? ""));
    })
    .sort((a, b) => a - b);
}

export function commandLineOf(pid: number): string[] {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, "utf8").split("\0").slice(0, -1);
  } catch {
    return [];
  }
}

/** Remains of a sandbox on the host except its logs; empty if absent. */
export function remainsOf(daemon: TestDaemon, sandboxId: string): string[] {
  const directory = join(daemon.dataDir, "sandboxes", sandboxId);
  const remains = daemon.leftovers().filter((line) => line.includes(sandboxId) && line !== directory);
  const files = existsSync(directory) ? readdirSync(directory).filter((name) => !LOGS.includes(name)) : [];
  return [...remains, ...files];
}

export const LOGS = ["console", "vmm.log"];

/** Prints the tails of the daemon's log and of the logs of its guests and their processes. */
export function showLogs(daemon: TestDaemon, title: string): void {
  const shown = [`--- ${title}: the daemon's log`, tail(daemon.log)];
  const sandboxes = join(daemon.dataDir, "sandboxes");
  for (const sandboxId of existsSync(sandboxes) ? readdirSync(sandboxes) : []) {
    for (const log of LOGS) {
      const path = join(sandboxes, sandboxId, log);
      if (existsSync(path)) shown.push(`--- ${sandboxId}: ${log}`, tail(textOf(path)));
    }
  }
  console.error(shown.join("\n"));
}

/** A file, or the files of a directory in their order. */
function textOf(path: string): string {
  if (!path.endsWith("console")) return readFileSync(path, "utf8");
  return readdirSync(path)
    .sort()
    .map((name) => readFileSync(join(path, name), "utf8"))
    .join("");
}

function tail(text: string): string {
  return text.slice(-SHOWN_CHARACTERS).trimEnd();
}
