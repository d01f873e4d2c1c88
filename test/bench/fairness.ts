/**
 * Benchmark of one organization's latency while another takes all it can: a guest that flushes its disk and the drive, one that calls its
 * room in a loop, one that looks up unresolvable names, and a key used by 64 connections. Each is compared with the same calls on an idle
 * host, in alternation; `…_p99_ratio` is the busy p99 over the idle p99.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { processesOf, until } from "../harness/guests.ts";
import {
  addRatios,
  asking,
  noSamples,
  otherOrganization,
  PROBES,
  probe,
  USUAL_RATES,
} from "./load/other-organization.ts";
import type { Bench } from "./report.ts";

const USUAL_COUNT = 1200;
const ROUNDS = 3;
const GREEDY = readFileSync(join(import.meta.dirname, "../fixtures/greedy.py"), "utf8");
const ROOM = "greedy";
const AGENT = "greedy";
const GUEST_MS = 600_000;
const GUEST_START_MS = 120_000;

/** Starts the load; the returned function ends it and returns its number of operations. */
type Greed = (daemon: TestDaemon, sandboxId: string) => Promise<() => Promise<number>>;

/** From the third on the guest's own machine is stopped. */
const GREEDS: Record<string, Greed> = {
  fsync: flushing,
  key: (daemon) => asking("greedy-client.ts", `${daemon.url}/v1/rooms/${ROOM}`, daemon.apiKey),
  calls: (daemon, sandboxId) => saying("calls", daemon, sandboxId),
  names: (daemon, sandboxId) => saying("names", daemon, sandboxId),
};

export async function benchFairness({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const env = { ROOMD_VSOCK_TRANSPORT: "vhost-user", ROOMD_POOL_SIZE: "0", ...USUAL_RATES };
  const daemon = await start({ guests: true, env });
  await daemon.room(ROOM);
  await daemon.ok("POST", `/v1/rooms/${ROOM}/drive/write`, { path: "/greedy.py", content: GREEDY });
  const { sandbox_id } = await daemon.sandbox(ROOM, AGENT, GUEST_CID_MIN);
  await using other = await otherOrganization(daemon);
  const each = Math.ceil(count / ROUNDS);
  await probe(other, each, noSamples());
  for (const [name, greed] of Object.entries(GREEDS)) {
    const quiet = noSamples();
    const concurrent = noSamples();
    const perSecond: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await probe(other, each, quiet);
      const startedAt = performance.now();
      const end = await greed(daemon, sandbox_id);
      await probe(other, each, concurrent);
      perSecond.push(((await end()) / (performance.now() - startedAt)) * 1000);
    }
    for (const kind of PROBES) {
      report.add(`${name}_${kind}`, "ms", concurrent[kind], `${name}_${kind}_quiet`);
      report.add(`${name}_${kind}_quiet`, "ms", quiet[kind]);
    }
    addRatios(report, name, concurrent, quiet);
    report.add(`${name}_per_second`, "1/s", perSecond);
  }
}

async function flushing(daemon: TestDaemon) {
  const taken = daemon.exec(ROOM, AGENT, { command: "python3 /mnt/drive/greedy.py", timeout_ms: GUEST_MS });
  await until(
    "the guest flushes",
    async () => {
      return (await daemon.exec(ROOM, AGENT, { command: "test -e /run/greedy" })).exit_code === 0;
    },
    GUEST_START_MS,
  );
  return async () => {
    await daemon.sh(ROOM, AGENT, "rm /run/greedy");
    const { exit_code, stdout, stderr } = await taken;
    if (exit_code !== 0) throw new Error(stderr);
    return Number(stdout);
  };
}

/** An emulated guest is too slow to be greedy: a program sends its requests instead. */
async function saying(kind: "calls" | "names", daemon: TestDaemon, sandboxId: string) {
  for (const part of ["qemu", "vsock"] as const) {
    for (const pid of processesOf(daemon, part, sandboxId)) process.kill(pid, "SIGSTOP");
  }
  const directory = join(daemon.runtimeDir, "g", sandboxId);
  const saved = JSON.parse(readFileSync(join(directory, "processes.json"), "utf8"));
  const { nonce, secret } = saved as { nonce: string; secret?: string | null };
  // The one on which the daemon listens for this agent.
  const [name = ""] = readdirSync(join(directory, "vsock")).filter((each) => each.startsWith("guest.sock_"));
  const socket = join(directory, "vsock", name);
  return await asking("greedy-guest.ts", socket, String(GUEST_CID_MIN), nonce, secret ?? "none", kind, ROOM);
}
