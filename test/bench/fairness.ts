/**
 * Owns the benchmark of what one organization feels of another that takes all it can: a guest that flushes its disk and the drive,
 * one that calls its room in a loop, one that looks up names that nobody answers for, and a key used by 64 connections. Each is
 * held against the same calls on a quiet host, measured in turns with it; `…_p99_ratio` is the one's p99 over the other's.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { CONFIG_KEYS, variableOf } from "../../daemon/core/config.ts";
import { GUEST_CID_MIN } from "../../shared/ids.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { processesOf, until } from "../harness/guests.ts";
import type { Bench } from "./report.ts";
import { timed } from "./sampling.ts";
import { summarize } from "./stats.ts";

const USUAL_COUNT = 1200;
const ROUNDS = 3;
/** Calls begin so long after one another, answered or not: a pause of the daemon is felt by all that fall into it. */
const EVERY_MS = 5;
/** One call in so many commits something, and another reads a file. */
const RARE = 8;
const GREEDY = readFileSync(join(import.meta.dirname, "../fixtures/greedy.py"), "utf8");
const ROOM = "greedy";
const AGENT = "greedy";
const GUEST_MS = 600_000;
const GUEST_START_MS = 120_000;
const PROBES = ["me", "commit", "file"] as const;

type Samples = Record<(typeof PROBES)[number], number[]>;
type Call = (method: string, path: string, body?: object) => Promise<void>;
/** Begins to take all it can; what is returned ends that, and says how often it was done. */
type Greed = (daemon: TestDaemon, sandboxId: string) => Promise<() => Promise<number>>;

/** From the third on the guest's own machine stands still. */
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
  const call = await otherOrganization(daemon);
  const each = Math.ceil(count / ROUNDS);
  await probe(call, each, noSamples());
  for (const [name, greed] of Object.entries(GREEDS)) {
    const quiet = noSamples();
    const beside = noSamples();
    const perSecond: number[] = [];
    for (let round = 0; round < ROUNDS; round++) {
      await probe(call, each, quiet);
      const startedAt = performance.now();
      const end = await greed(daemon, sandbox_id);
      await probe(call, each, beside);
      perSecond.push(((await end()) / (performance.now() - startedAt)) * 1000);
    }
    for (const kind of PROBES) {
      report.add(`${name}_${kind}`, "ms", beside[kind], `${name}_${kind}_quiet`);
      report.add(`${name}_${kind}_quiet`, "ms", quiet[kind]);
    }
    const ratio = summarize(beside.me).p99 / summarize(quiet.me).p99;
    report.add(`${name}_me_p99_ratio`, "×", [ratio], undefined, { of: "p50", most: 2 });
    report.add(`${name}_per_second`, "1/s", perSecond);
  }
}

/** As an operator has them: those of the tests are wider. */
const USUAL_RATES = Object.fromEntries(
  Object.entries(CONFIG_KEYS).flatMap(([name, { default: value }]) =>
    /requests_(per_second|at_once)$/.test(name) ? [[variableOf(name), String(value)]] : [],
  ),
);

const noSamples = (): Samples => ({ me: [], commit: [], file: [] });

async function otherOrganization(daemon: TestDaemon): Promise<Call> {
  const { stdout } = await daemon.cli(["org", "create", "--name", "Other", "--json"]);
  const { api_key } = JSON.parse(stdout) as { api_key: string };
  const call: Call = async (method, path, body) => {
    const response = await fetch(daemon.url + path, {
      method,
      headers: { authorization: `Bearer ${api_key}`, "content-type": "application/json" },
      ...(body ? { body: JSON.stringify(body) } : {}),
    });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${method} ${path}: ${response.status}`);
  };
  await call("POST", "/v1/rooms", { room_id: "other" });
  await call("POST", "/v1/rooms/other/drive/write", { path: "/f", content: "f" });
  return call;
}

/** Calls at a steady pace, whether or not those before are answered. */
async function probe(call: Call, count: number, into: Samples): Promise<void> {
  const under: Promise<void>[] = [];
  const take = async (kind: keyof Samples, work: () => Promise<void>) => void into[kind].push(await timed(work));
  const startedAt = performance.now();
  for (let taken = 0; taken < count; taken++) {
    await Bun.sleep(Math.max(0, startedAt + taken * EVERY_MS - performance.now()));
    under.push(take("me", () => call("GET", "/v1/me")));
    if (taken % RARE === 0) {
      const message = { source: "ann", topic: "none", payload: { n: taken } };
      under.push(take("commit", () => call("POST", "/v1/rooms/other/messages", message)));
    }
    if (taken % RARE === RARE / 2) {
      under.push(take("file", () => call("GET", "/v1/rooms/other/drive/files/f")));
    }
  }
  await Promise.all(under);
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

/** An emulated guest is too slow to be greedy: what it could say is said in its place. */
async function saying(kind: "calls" | "names", daemon: TestDaemon, sandboxId: string) {
  for (const part of ["qemu", "vsock"] as const) {
    for (const pid of processesOf(daemon, part, sandboxId)) process.kill(pid, "SIGSTOP");
  }
  const directory = join(daemon.runtimeDir, "g", sandboxId);
  const told = JSON.parse(readFileSync(join(directory, "processes.json"), "utf8"));
  const { nonce, secret } = told as { nonce: string; secret?: string | null };
  // The one on which the daemon listens for this agent.
  const [name = ""] = readdirSync(join(directory, "vsock")).filter((each) => each.startsWith("guest.sock_"));
  const socket = join(directory, "vsock", name);
  const proof = secret ? "secret" : "none";
  return await asking("greedy-guest.ts", socket, String(GUEST_CID_MIN), nonce, proof, kind, ROOM);
}

async function asking(program: string, ...args: string[]) {
  const child = spawn(process.execPath, [join(import.meta.dirname, program), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let told = "";
  child.stdout.on("data", (chunk) => {
    told += chunk;
  });
  const closed = once(child, "close");
  await until(`${program} asks`, () => told !== "" || child.exitCode !== null);
  return async () => {
    child.kill();
    await closed;
    const made = /^asking\n(\d+)\n$/.exec(told)?.[1];
    if (made === undefined) throw new Error(`${program} has said ${JSON.stringify(told)}`);
    return Number(made);
  };
}
