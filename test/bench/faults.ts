/**
 * Benchmark of the effect of a fault on other sandboxes: `true` in one sandbox while another has a fault. The same sandbox undisturbed is
 * measured in alternation; `…_p99_ratio` is the disturbed p99 over the undisturbed one, and 2 is promised.
 */
import { symlinkSync } from "node:fs";
import { join } from "node:path";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import { SHARED_TEMPLATES, type TestDaemon } from "../harness/daemon.ts";
import { empty, fill, mountSmall } from "../harness/durability/small-disk.ts";
import { removeMemoryGroup, starve, whyNoMemoryGroup } from "../harness/event-loop/memory-group.ts";
import { executionsPath, startFlood } from "../harness/event-loop/streams.ts";
import { type Part, processesOf, until } from "../harness/guests.ts";
import { timed } from "./load/sampling.ts";
import { summarize } from "./load/stats.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 300;
/** Number of consecutive victims per fault: other load on the machine affects both sides alike. */
const ROUNDS = 3;
const DRIVE_LIMIT_GIB = "1";
const AT_THE_LIMIT = "1024M";
const DATA_SIZE = "size=2g";
const RUNTIME_SIZE = "size=8m";
const FLOODS = 8;
const FLOOD_MS = 600_000;
const ROOM = "bench";
const BYSTANDER = "bystander";

interface Victim {
  agent_id: string;
  sandbox_id: string;
}

const FAULTS: Record<string, (daemon: TestDaemon, victim: Victim) => Promise<void>> = {
  qemu_stopped: async (daemon, { sandbox_id }) => signal(daemon, "qemu", sandbox_id, "SIGSTOP"),
  qemu_killed: async (daemon, { sandbox_id }) => signal(daemon, "qemu", sandbox_id, "SIGKILL"),
  virtiofsd_killed: async (daemon, { sandbox_id }) => signal(daemon, "virtiofsd", sandbox_id, "SIGKILL"),
  vsock_killed: async (daemon, { sandbox_id }) => signal(daemon, "vsock", sandbox_id, "SIGKILL"),
  guest_panicked: async (daemon, { agent_id }) => {
    await daemon.exec(ROOM, agent_id, { command: "(sleep 0.1; echo c >/proc/sysrq-trigger) >/dev/null 2>&1 &" });
  },
  host_without_memory: async (daemon, { agent_id, sandbox_id }) => {
    for (const pid of processesOf(daemon, "qemu", sandbox_id)) starve(pid);
    await daemon.ok("POST", executionsPath(ROOM, agent_id), { command: "head -c 200M /dev/zero >/dev/shm/eaten" });
  },
  runtime_filled: async ({ runtimeDir }) => fill(runtimeDir),
  data_filled: async ({ dataDir }) => fill(dataDir),
  drive_filled: async (daemon, { agent_id }) => {
    await daemon.exec(ROOM, agent_id, { command: `fallocate -l ${AT_THE_LIMIT} /mnt/drive/fill; true` });
  },
  output_flooded: async (daemon, { agent_id }) => {
    const path = executionsPath(ROOM, agent_id);
    for (let flood = 0; flood < FLOODS; flood++) await startFlood(daemon, path, FLOOD_MS);
  },
};

export async function benchFaults({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({
    guests: true,
    env: { ROOMD_POOL_SIZE: "0", ROOMD_DRIVE_LIMIT_GIB: DRIVE_LIMIT_GIB },
    prepare: ({ dataDir, runtimeDir }) => {
      mountSmall(runtimeDir, RUNTIME_SIZE);
      mountSmall(dataDir, DATA_SIZE);
      symlinkSync(SHARED_TEMPLATES, join(dataDir, "templates"));
    },
  });
  await daemon.room(ROOM);
  await daemon.sandbox(ROOM, BYSTANDER, GUEST_CID_MIN);
  await exec(daemon);
  const each = Math.ceil(count / ROUNDS);
  for (const [name, befall] of Object.entries(FAULTS)) {
    if (name === "host_without_memory" && whyNoMemoryGroup !== null) {
      console.error(`${name} is left out, because ${whyNoMemoryGroup}`);
      continue;
    }
    const quiet: number[] = [];
    const during: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      const victim = await newVictim(daemon, round);
      await sample(quiet, each, daemon);
      await befall(daemon, victim);
      await sample(during, each, daemon);
      await daemon.ok("DELETE", `/v1/rooms/${ROOM}/sandboxes/${victim.sandbox_id}`);
      await emptied(daemon);
    }
    report.add(name, "ms", during, `${name}_before`);
    report.add(`${name}_before`, "ms", quiet);
    report.add(`${name}_p99_ratio`, "×", [summarize(during).p99 / summarize(quiet).p99], undefined, {
      of: "p50",
      most: 2,
    });
  }
}

async function newVictim(daemon: TestDaemon, round: number): Promise<Victim> {
  const made: Victim = await daemon.sandbox(ROOM, `victim-${round}`, GUEST_CID_MIN + 1);
  await daemon.exec(ROOM, made.agent_id, { argv: ["true"] });
  return made;
}

async function sample(into: number[], count: number, daemon: TestDaemon): Promise<void> {
  for (let taken = 0; taken < count; taken++) into.push(await timed(() => exec(daemon)));
}

async function exec(daemon: TestDaemon): Promise<void> {
  const { exit_code } = await daemon.exec(ROOM, BYSTANDER, { argv: ["true"] });
  if (exit_code !== 0) throw new Error(`the command ended with ${exit_code}`);
}

/** The victim's leftovers are removed, and the drive accepts files again. */
async function emptied(daemon: TestDaemon): Promise<void> {
  empty(daemon.runtimeDir);
  empty(daemon.dataDir);
  removeMemoryGroup();
  await daemon.api("DELETE", `/v1/rooms/${ROOM}/drive/delete?path=fill`);
  await until("the drive takes files", async () => {
    const { status } = await daemon.api("POST", `/v1/rooms/${ROOM}/drive/write`, { path: "f", content: "f" });
    return status < 300;
  });
}

function signal(daemon: TestDaemon, part: Part, sandboxId: string, how: NodeJS.Signals): void {
  const pids = processesOf(daemon, part, sandboxId);
  if (pids.length === 0) throw new Error(`${sandboxId} has no ${part}`);
  for (const pid of pids) process.kill(pid, how);
}
