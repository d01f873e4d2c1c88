/**
 * Benchmark of snapshots, for several sizes of memory that a sandbox's program holds: a snapshot, a fork, hibernation, resume, and
 * rollback, each once per round; then eight concurrent forks. Operations that end with a running sandbox are measured to the end of its
 * first command. Yardsticks, in the same rounds: a new sandbox of the same template and memory to the end of its first command; and a file
 * with the bytes of a snapshot, written and flushed to the same disk. A size that does not fit into the host's memory is skipped with a
 * message.
 */
import { closeSync, fsyncSync, openSync, readFileSync, rmSync, writeSync } from "node:fs";
import { join } from "node:path";
import type { SnapshotRecord } from "../../shared/api/snapshots.ts";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { timed } from "./load/sampling.ts";
import type { Bench, Report } from "./report.ts";

/** Memory that the program holds, and how many of the usual rounds are made with it. */
const SIZES = [
  { used_mib: 256, part: 1 },
  { used_mib: 2048, part: 1 / 3 },
];
const USUAL_COUNT = 6;
/** Additional memory of a sandbox. */
const SPARE_MIB = 256;
/** Concurrent forks, of the smallest size only: larger ones would exceed the memory of most hosts. */
const AT_ONCE = 8;
/** Emulated guests on a busy host take a while for gigabytes. */
const HOLD_DEADLINE_MS = 300_000;
const ROOM = "bench";
const SOURCE = "source";
const WORKER = "worker";
const MIB = 1024 ** 2;
const SANDBOXES = `/v1/rooms/${ROOM}/sandboxes`;

/** Result of one round. */
interface Round {
  create: number;
  paused: number;
  snapshot: number;
  size: number;
  plainWrite: number;
  fork: number;
  hibernate: number;
  resume: number;
  rollback: number;
}

export async function benchSnapshot({ report, count = USUAL_COUNT, mostMemoryMib, start }: Bench): Promise<void> {
  const daemon = await start({ guests: true, env: { ROOMD_POOL_SIZE: "0" } });
  await daemon.room(ROOM);
  for (const { used_mib, part } of SIZES) {
    if (used_mib > (mostMemoryMib ?? Number.POSITIVE_INFINITY)) continue;
    const memory_mib = used_mib + SPARE_MIB;
    const bench = new SizeBench(daemon, used_mib, memory_mib);
    // The source, and one other sandbox.
    if (!bench.fits(2)) continue;
    await bench.begin();
    // Once uncounted: the template is read whole then.
    await bench.round();
    const rounds: Round[] = [];
    while (rounds.length < Math.ceil(count * part)) rounds.push(await bench.round());
    addRounds(report, used_mib, rounds);
    if (used_mib === SIZES[0]?.used_mib && bench.fits(AT_ONCE)) {
      report.add(`fork_x${AT_ONCE}_${used_mib}`, "ms", [await bench.forks(AT_ONCE)], `create_${used_mib}`);
    }
    await bench.end();
  }
}

class SizeBench {
  readonly #daemon: TestDaemon;
  readonly #used_mib: number;
  readonly #memory_mib: number;

  constructor(daemon: TestDaemon, used_mib: number, memory_mib: number) {
    this.#daemon = daemon;
    this.#used_mib = used_mib;
    this.#memory_mib = memory_mib;
  }

  /** Whether the host has memory for this number of sandboxes; logs a message if not. */
  fits(sandboxes: number): boolean {
    const available = Number(/^MemAvailable:\s+(\d+) kB$/m.exec(readFileSync("/proc/meminfo", "utf8"))?.[1]) / 1024;
    const needed = sandboxes * this.#memory_mib;
    if (needed <= available) return true;
    console.log(
      `left out: ${sandboxes} sandboxes of ${this.#used_mib} MiB used need ${needed} MiB of memory, and the host has ${Math.floor(available)} MiB`,
    );
    return false;
  }

  /** Creates the source, with a program that holds its memory. */
  async begin(): Promise<void> {
    await this.#daemon.sandbox(ROOM, SOURCE, GUEST_CID_MIN, { memory_mib: this.#memory_mib });
    // No page is like another, nor of zeros.
    const hold = `import os, time; held = os.urandom(1 << 20) * ${this.#used_mib}; open("/root/held", "w").close(); time.sleep(1e9)`;
    const command = `setsid python3 -c '${hold}' >/dev/null 2>&1 </dev/null & until [ -e /root/held ]; do sleep 0.1; done`;
    const held = await this.#daemon.exec(ROOM, SOURCE, { command, timeout_ms: HOLD_DEADLINE_MS });
    if (held.exit_code !== 0) throw new Error(`no memory was held: ${JSON.stringify(held)}`);
  }

  async round(): Promise<Round> {
    const daemon = this.#daemon;
    const create = await timed(async () => {
      await daemon.sandbox(ROOM, WORKER, GUEST_CID_MIN + 1, { memory_mib: this.#memory_mib });
      await this.#firstCommand(WORKER);
    });
    await daemon.ok("DELETE", `${SANDBOXES}/${WORKER}`);

    const beganAt = performance.now();
    const taken: SnapshotRecord = await daemon.ok("POST", `${SANDBOXES}/${SOURCE}/snapshots`, {});
    const snapshot = performance.now() - beganAt;
    const { snapshot_id, size_bytes, paused_ms } = taken;
    const plainWrite = await timed(async () => writePlain(join(daemon.dataDir, "plain"), size_bytes));

    const fork = await this.forks(1);
    const hibernate = await timed(() => daemon.ok("POST", `${SANDBOXES}/${SOURCE}/hibernate`));
    const resume = await timed(async () => {
      await daemon.ok("POST", `${SANDBOXES}/${SOURCE}/resume`);
      await this.#firstCommand(SOURCE);
    });
    const rollback = await timed(async () => {
      await daemon.ok("POST", `${SANDBOXES}/${SOURCE}/rollback`, { snapshot_id });
      await this.#firstCommand(SOURCE);
    });
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/snapshots/${snapshot_id}`);
    const size = size_bytes / MIB;
    return { create, paused: paused_ms, snapshot, size, plainWrite, fork, hibernate, resume, rollback };
  }

  /** `count` forks in one call: until the last one has finished its first command. */
  async forks(count: number): Promise<number> {
    const daemon = this.#daemon;
    const names = Array.from({ length: count }, (_, index) => `fork-${index}`);
    let snapshotId = "";
    const whole = await timed(async () => {
      const forked = await daemon.ok("POST", `${SANDBOXES}/${SOURCE}/fork`, {
        agents: names.map((agent_id) => ({ agent_id })),
      });
      snapshotId = forked.snapshot_id;
      const failed = (forked.items as { problem: unknown }[]).filter(({ problem }) => problem !== null);
      if (failed.length > 0) throw new Error(`not forked: ${JSON.stringify(failed)}`);
      await Promise.all(names.map((name) => this.#firstCommand(name)));
    });
    for (const name of names) await daemon.ok("DELETE", `${SANDBOXES}/${name}`);
    await daemon.ok("DELETE", `/v1/rooms/${ROOM}/snapshots/${snapshotId}`);
    return whole;
  }

  async end(): Promise<void> {
    await this.#daemon.ok("DELETE", `${SANDBOXES}/${SOURCE}`);
  }

  async #firstCommand(name: string): Promise<void> {
    const { exit_code } = await this.#daemon.exec(ROOM, name, { argv: ["true"] });
    if (exit_code !== 0) throw new Error(`the first command in ${name} ended with ${exit_code}`);
  }
}

function writePlain(path: string, bytes: number): void {
  const piece = Buffer.alloc(MIB, "random enough");
  const file = openSync(path, "w");
  try {
    for (let written = 0; written < bytes; written += piece.byteLength) writeSync(file, piece);
    fsyncSync(file);
  } finally {
    closeSync(file);
    rmSync(path);
  }
}

function addRounds(report: Report, used_mib: number, rounds: readonly Round[]): void {
  const of = (part: keyof Round) => rounds.map((round) => round[part]);
  const create = `create_${used_mib}`;
  const plainWrite = `plain_write_${used_mib}`;
  report.add(create, "ms", of("create"));
  report.add(plainWrite, "ms", of("plainWrite"));
  report.add(`snapshot_${used_mib}.paused`, "ms", of("paused"), plainWrite);
  report.add(`snapshot_${used_mib}.call`, "ms", of("snapshot"), plainWrite);
  report.add(`snapshot_${used_mib}.size`, "MiB", of("size"));
  report.add(`fork_${used_mib}`, "ms", of("fork"), create);
  report.add(`hibernate_${used_mib}`, "ms", of("hibernate"), plainWrite);
  report.add(`resume_${used_mib}`, "ms", of("resume"), create);
  report.add(`rollback_${used_mib}`, "ms", of("rollback"), create);
}
