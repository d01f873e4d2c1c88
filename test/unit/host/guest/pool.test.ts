/** Which machines are launched ahead, and which give their memory away; their launch only pretends. */
import { EventEmitter } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import { makePaths } from "../../../../daemon/core/config/paths.ts";
import { makeLog } from "../../../../daemon/core/log.ts";
import type { GuestImage, LaunchPlan } from "../../../../daemon/host/guest/plan.ts";
import { type PoolDeps, WarmPool } from "../../../../daemon/host/guest/pool.ts";
import { REHEARSED_LINE } from "../../../../shared/agent-protocol/messages.ts";
import { until } from "../../../harness/guests.ts";

/** Launched machines, and ended ones, by their image. */
const launched: string[] = [];
const ended: string[] = [];
/** Those of these images are on their way until they are ended. */
let slow: string[] = [];

vi.mock("../../../../daemon/host/guest/start.ts", () => ({
  launchGuest: async (_host: unknown, plan: LaunchPlan, _mode: string, { awaited }: { awaited: AbortSignal }) => {
    const name = String(plan.image.snapshot_memory);
    signals.push(awaited);
    launched.push(name);
    if (slow.includes(name)) {
      await until("the guest is killed", () => killed.has(plan.paths.directory));
      ended.push(name);
      throw new Error("QEMU has ended");
    }
    const machine = {
      process: { pid: process.pid, exited: new Promise(() => {}) },
      onConsole: (hear: (bytes: Uint8Array) => void) => {
        const rehearsed = () => hear(new TextEncoder().encode(REHEARSED_LINE));
        emitter.on("line", rehearsed);
        return () => emitter.off("line", rehearsed);
      },
      resume: async () => {},
      resizeMemory: async (mib: number) => void given.push(mib),
      pause: async () => {},
      typeLine: () => emitter.emit("line"),
    };
    return { parts: { plan, machine }, timings: {}, end: async () => void ended.push(name) };
  },
}));
vi.mock("../../../../daemon/host/process.ts", async (original) => ({
  ...(await original<object>()),
  isAlive: () => true,
}));
vi.mock("../../../../daemon/host/guest/leftovers.ts", () => ({
  endProcesses: async ({ directory }: { directory: string }) => void killed.add(directory),
}));
/** For each launched machine, a signal that fires once a caller waits for it. */
const signals: AbortSignal[] = [];
const emitter = new EventEmitter();
const killed = new Set<string>();
/** Memory that machines were given while they rehearsed. */
const given: number[] = [];

let home: string;
let pool: WarmPool;
/** Memory that guests could have. */
let freeMib: number;
/** Resolved while no sandbox is being started. */
let starts: PromiseWithResolvers<void>;
/** Number of machines of the first template, if there is memory. */
let burst: number;
/** The memory that those of the first template are to have. */
let memory_mib: number;

const imageOf = (name: string, base_memory_mib: number) =>
  ({ snapshot_memory: name, hardware: { base_memory_mib } }) as GuestImage;
const IMAGES = { default: imageOf("default", 256), docker: imageOf("docker", 512), browser: imageOf("browser", 1024) };

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "roomd-pool-"));
  [launched.length, ended.length, given.length, signals.length, slow, freeMib, burst, memory_mib] = [
    0,
    0,
    0,
    0,
    [],
    10_000,
    0,
    256,
  ];
  killed.clear();
  starts = Promise.withResolvers<void>();
  starts.resolve();
  const deps = {
    paths: makePaths({ data_dir: home, runtime_dir: home }),
    log: makeLog("error", () => {}),
    host: () => ({}),
    wanted: async () => [
      { image: IMAGES.default, memory_mib, size: 1, isExtra: false },
      { image: IMAGES.docker, memory_mib: 512, size: 1, isExtra: true },
      { image: IMAGES.browser, memory_mib: 1024, size: 1, isExtra: true },
      { image: IMAGES.default, memory_mib, size: burst, isExtra: true },
    ],
    whenNobodyStarts: () => starts.promise,
    giveWay: async () => false,
    hasMemoryFor: (memoryMib: readonly number[]) => memoryMib.reduce((sum, mib) => sum + mib, 0) <= freeMib,
  };
  pool = new WarmPool(deps as unknown as PoolDeps);
  pool.serve(deps);
});
afterEach(async () => {
  await pool.close();
  rmSync(home, { recursive: true });
});

/** Resolves once this number of machines wait and no more is launched. */
async function filled(count: number): Promise<void> {
  pool.refill();
  await until("the guests are ready", () => pool.figures().ready === count);
  await Bun.sleep(20);
  expect(pool.figures().ready).toBe(count);
}

test("none is launched while a caller waits for a sandbox", async () => {
  starts = Promise.withResolvers<void>();
  pool.refill();
  await Bun.sleep(20);
  expect(launched).toEqual([]);
  starts.resolve();
  await filled(3);
});

test("those of other templates are launched only if there is memory, the host's own always", async () => {
  freeMib = 0;
  await filled(1);
  expect(launched).toEqual(["default"]);
  freeMib = 600;
  await filled(2);
  expect(launched).toEqual(["default", "docker"]);
});

test("pending ones count: two that would fit alone are not launched together", async () => {
  slow = ["docker"];
  freeMib = 1100;
  pool.refill();
  await until("two guests are launched", () => launched.length === 2);
  await Bun.sleep(50);
  expect(launched.sort()).toEqual(["default", "docker"]);
  expect(await pool.makeRoom(1)).toBe(true);
});

test("they release memory to a caller, the least likely first, and those of the first template stay", async () => {
  await filled(3);
  expect(await pool.makeRoom(2000)).toBe(false);
  expect(ended).toEqual([]);
  freeMib = 0;
  expect(await pool.makeRoom(600)).toBe(true);
  expect(ended).toEqual(["browser"]);
  await filled(2);
  expect(await pool.makeRoom(500)).toBe(true);
  expect(ended).toEqual(["browser", "docker"]);
  expect(await pool.makeRoom(1)).toBe(false);
  expect(pool.take(IMAGES.default, 256)).not.toBeNull();
});

test("a pending one is not awaited, and two callers in need of memory wait for the same", async () => {
  slow = ["browser"];
  await until("the launch has started", () => {
    pool.refill();
    return launched.includes("browser");
  });
  freeMib = 0;
  const [first, second] = [pool.makeRoom(1000), pool.makeRoom(1000)];
  expect(await Promise.all([first, second])).toEqual([true, true]);
  expect(ended).toContain("browser");
});

test("more of them wait after concurrent demand, while there is memory and as long as demand is likely", async () => {
  burst = 3;
  freeMib = 0;
  await filled(1);
  freeMib = 10_000;
  await filled(5);
  expect(pool.figures()).toEqual({ size: 5, ready: 5 });
  burst = 2;
  pool.refill();
  await until("the surplus guest has ended", () => ended.length === 1);
  expect(ended).toEqual(["default"]);
  expect(pool.figures()).toEqual({ size: 4, ready: 4 });
  // The machines that are always retained do not give up their memory.
  burst = 0;
  expect(await pool.makeRoom(256)).toBe(true);
  expect(ended).toEqual(["default", "default"]);
});

test("each has the memory its sandbox is likely to need, and is not used for a sandbox with less", async () => {
  [freeMib, memory_mib] = [0, 1024];
  await filled(1);
  expect(given).toEqual([1024]);
  expect(pool.take(IMAGES.default, 512)).toBeNull();
  expect(pool.take(IMAGES.default, 2048)).toMatchObject({ memory_mib: 1024 });
  await filled(1);
  memory_mib = 512;
  pool.refill();
  await until("a smaller guest is ready", () => given.length === 3 && pool.figures().ready === 1);
  expect([given, ended]).toEqual([[1024, 1024, 512], ["default"]]);
  // One with less will do: it can be given the rest.
  memory_mib = 1024;
  await filled(1);
  expect(given).toHaveLength(3);
  expect(pool.take(IMAGES.default, 1024)).toMatchObject({ memory_mib: 512 });
});

test("of the waiting machines the one that lacks least is taken", async () => {
  [freeMib, memory_mib, burst] = [10_000, 512, 2];
  await filled(4);
  memory_mib = 1024;
  burst = 3;
  await filled(5);
  expect(pool.take(IMAGES.default, 2048)).toMatchObject({ memory_mib: 1024 });
  expect(pool.take(IMAGES.default, 2048)).toMatchObject({ memory_mib: 512 });
  expect(pool.take(IMAGES.default, 256)).toBeNull();
});

test("a launch is not urgent until its machine is taken, or is late", async () => {
  freeMib = 0;
  await filled(1);
  expect(signals.map(({ aborted }) => aborted)).toEqual([false]);
  slow = ["default"];
  expect(pool.take(IMAGES.default, 256)).not.toBeNull();
  const timers = vi.spyOn(globalThis, "setTimeout");
  pool.refill();
  await until("another launch has started", () => signals.length === 2);
  const [late] = timers.mock.calls.find(([, ms]) => ms === 3_000) ?? [];
  timers.mockRestore();
  expect(signals[1]?.aborted).toBe(false);
  late?.();
  expect(signals[1]?.aborted).toBe(true);
  const taken = pool.take(IMAGES.default, 256);
  const { directory } = makePaths({ data_dir: home, runtime_dir: home }).sandbox(String(taken?.sandbox_id));
  killed.add(directory);
  await taken?.launched.catch(() => {});
});
