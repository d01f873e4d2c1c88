/**
 * Benchmark of create: from the call to the end of the first command, as a client sees it, and its breakdown; from the snapshot, several
 * concurrently, from the warm pool, and in a fast sequence with the default pool, which then starts sandboxes from any available source.
 * Yardstick: the same with the same template and a refused snapshot, so that each guest boots cold.
 */
import { readFileSync } from "node:fs";
import type { SandboxRecord, StartMode } from "../../shared/api/sandboxes.ts";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { layColdTemplate } from "./cold-template.ts";
import { inLanes, timed } from "./load/sampling.ts";
import { poolAtRest } from "./pool.ts";
import type { Bench, Limit, Report } from "./report.ts";

const USUAL_COUNT = 20;
const COLD_COUNT = 3;
const AT_ONCE = 4;
const POOL_SIZE = 2;
const BURST = 10;
const MEMORY_MIB = 512;
const ROOM = "bench";
const MAX_OF_A_COLD_BOOT: Limit = { of: "ratio", most: 1 / 8 };
/** 120 MB. */
const MAX_IDLE: Limit = { of: "p50", most: 120e6 / 1024 ** 2 };

/** One sandbox from its creation to its end, in milliseconds. */
interface Life {
  create: number;
  firstExec: number;
  destroy: number;
  boot: SandboxRecord["boot"];
}

/** One start mode, with a daemon whose sandboxes all start in it. */
interface Way {
  daemon: TestDaemon;
  mode: StartMode;
  count: number;
  lives: Life[];
}

export async function benchCreate({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const restoring = await start({ guests: true, env: poolOf(0) });
  const freshRss = residentMib(restoring.pid);
  const pooling = await start({ guests: true, env: poolOf(POOL_SIZE) });
  const booting = await start({ guests: false, env: poolOf(0) });
  layColdTemplate(booting.dataDir);
  await booting.restart("SIGTERM");

  const restored: Way = { daemon: restoring, mode: "snapshot", count, lives: [] };
  const pooled: Way = { daemon: pooling, mode: "pool", count, lives: [] };
  const cold: Way = { daemon: booting, mode: "cold", count: COLD_COUNT, lives: [] };
  await takeAllWays([restored, pooled, cold]);

  const two = await createdWithTwo(pooling, pooled);
  // Machines with two processors wait no more.
  await pooling.restart("SIGTERM");

  const inARow: Life[] = [];
  await poolAtRest(pooling, POOL_SIZE);
  while (inARow.length < count)
    inARow.push({ ...(await reachFirstExec(pooling, 0)), destroy: await timed(() => destroy(pooling, 0)) });

  const together = await inLanes(AT_ONCE, AT_ONCE, (index) => reachFirstExec(restoring, index, "snapshot"));
  await Promise.all(Array.from({ length: AT_ONCE }, (_, index) => destroy(restoring, index)));

  const bursts = await createdTogether(
    await start({ guests: true, env: { ...poolOf(POOL_SIZE), ROOMD_POOL_MOST: String(BURST) } }),
  );

  addLives(report, "create", restored.lives, "cold_boot", MAX_OF_A_COLD_BOOT);
  report.add(`create_x${AT_ONCE}`, "ms", together.samples, "create");
  report.add(`create_x${AT_ONCE}_wall`, "ms", [together.wallMs], "create");
  addLives(report, "create_pool", pooled.lives, "cold_boot");
  report.add(`create_x${BURST}_first`, "ms", bursts.first.samples);
  report.add(`create_x${BURST}_first_wall`, "ms", [bursts.first.wallMs]);
  report.add(`create_x${BURST}_again`, "ms", bursts.again.samples, `create_x${BURST}_first`);
  report.add(`create_x${BURST}_again_wall`, "ms", [bursts.again.wallMs], `create_x${BURST}_first_wall`);
  addLives(report, "create_pool_2_vcpus", two, "create_pool", { of: "ratio", most: 1.5 });
  addLives(report, "create_in_a_row", inARow, "cold_boot");
  addLives(report, "cold_boot", cold.lives);
  report.add("daemon_rss_fresh", "MiB", [freshRss], undefined, MAX_IDLE);
  report.add("daemon_rss_after", "MiB", [residentMib(restoring.pid)]);
  report.add("daemon_rss_after_pool", "MiB", [residentMib(pooling.pid)]);
}

/** Sandboxes with two processors, one after another: the template is saved with as many once the first has booted. */
async function createdWithTwo(daemon: TestDaemon, { count }: Way): Promise<Life[]> {
  const lives: Life[] = [];
  const one = async (mode?: StartMode) => {
    const life = await reachFirstExec(daemon, 0, mode, 2);
    return { ...life, destroy: await timed(() => destroy(daemon, 0)) };
  };
  await one();
  // The template's own machines, and one with two.
  const full = () => poolAtRest(daemon, POOL_SIZE + 1);
  for (await full(); lives.length < count; await full()) lives.push(await one("pool"));
  return lives;
}

/** Concurrent creates, the first time without advance notice for the pool. */
async function createdTogether(daemon: TestDaemon) {
  const together = async () => {
    const done = await inLanes(BURST, BURST, (index) => reachFirstExec(daemon, index));
    await Promise.all(Array.from({ length: BURST }, (_, index) => destroy(daemon, index)));
    return done;
  };
  await daemon.room(ROOM);
  await poolAtRest(daemon, POOL_SIZE);
  const first = await together();
  await poolAtRest(daemon, BURST);
  return { first, again: await together() };
}

const poolOf = (size: number) => ({ ROOMD_POOL_SIZE: String(size) });

/** Each way once uncounted, for the daemon reads the whole template then; and each in turns, so that load falls on all. */
async function takeAllWays(ways: readonly Way[]): Promise<void> {
  for (const way of ways) {
    await way.daemon.room(ROOM);
    await live(way);
  }
  for (let round = 0; round < COLD_COUNT; round++) {
    for (const way of ways) {
      while (way.lives.length < (way.count * (round + 1)) / COLD_COUNT) way.lives.push(await live(way));
    }
  }
}

/** Lifetime of one sandbox. The pool is full before it and again after it, so that refilling does not disturb the measurement. */
async function live({ daemon, mode }: Way): Promise<Life> {
  const poolFull = async () => (mode === "pool" ? await poolAtRest(daemon, POOL_SIZE) : undefined);
  await poolFull();
  const life = await reachFirstExec(daemon, 0, mode);
  const destroyMs = await timed(() => destroy(daemon, 0));
  await poolFull();
  return { ...life, destroy: destroyMs };
}

/** Creates a sandbox and runs its first command. Throws unless it started in that mode, if one is named. */
async function reachFirstExec(
  daemon: TestDaemon,
  index: number,
  mode?: StartMode,
  vcpu_count = 1,
): Promise<Omit<Life, "destroy">> {
  const startedAt = performance.now();
  const created: SandboxRecord = await daemon.sandbox(ROOM, agent(index), GUEST_CID_MIN + index, {
    memory_mib: MEMORY_MIB,
    vcpu_count,
  });
  const createdAt = performance.now();
  const done = await daemon.exec(ROOM, agent(index), { argv: ["true"] });
  const doneAt = performance.now();
  if (done.exit_code !== 0) throw new Error(`the first command failed: ${JSON.stringify(done)}`);
  if (mode && created.start_mode !== mode)
    throw new Error(`the sandbox started by ${created.start_mode}, not by ${mode}`);
  return { create: createdAt - startedAt, firstExec: doneAt - createdAt, boot: created.boot };
}

async function destroy(daemon: TestDaemon, index: number): Promise<void> {
  await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/${agent(index)}`);
}

const agent = (index: number) => `worker-${index}`;

/** The whole road first, then its parts as the client and as the daemon see them. */
function addLives(report: Report, name: string, lives: readonly Life[], yardstick?: string, limit?: Limit): void {
  const add = (part: string, of: (life: Life) => number | undefined, against?: string, within?: Limit) =>
    report.add(
      name + part,
      "ms",
      lives.map((life) => of(life) ?? Number.NaN),
      against,
      within,
    );
  add("", ({ create, firstExec }) => create + firstExec, yardstick, limit);
  add(".call", ({ create }) => create);
  add(".first_exec", ({ firstExec }) => firstExec);
  add(".destroy", ({ destroy }) => destroy);
  for (const stage of Object.keys(lives[0]?.boot ?? {})) {
    add(`.boot.${stage.replace(/_ms$/, "")}`, ({ boot }) => boot[stage]);
  }
}

function residentMib(pid: number): number {
  const kib = /^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1];
  return Number(kib) / 1024;
}
