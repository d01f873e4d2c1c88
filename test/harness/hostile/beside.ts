/**
 * What an organization feels while another attacks: its calls at a steady pace, quiet and then beside the attack, those of a bare server
 * process in the same time, which feel what the host's processors are short of, and the longest turn of the daemon's event loop meanwhile.
 *
 * A server that is busy waits for a processor longer than one that is not: the time that the server's thread was runnable and did not run is
 * no part of a call's.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { startBare } from "../../bench/bare.ts";
import { summarize } from "../../bench/stats.ts";
import type { TestDaemon } from "../daemon.ts";
import { until } from "../guests.ts";
import { sshPort } from "../ssh-client.ts";
import { ALLOWANCE, type RecordedTurn, turnsOf } from "../turns.ts";
import type { Attack, Target } from "./attack.ts";

const EVERY_MS = 5;
const MOST_P99_MS = 10;
/** Calls before those that are measured: connections are opened and code is compiled then. */
const WARM_UP = 100;
const START_MS = 60_000;
/** As many as the attacker keeps under way. */
const MOST_REQUESTS = "16384";

interface Felt {
  me: number;
  bare: number;
}

export interface Measured {
  quiet: Felt;
  beside: Felt;
  /** Longest p99 that passes. */
  most: number;
  longest: RecordedTurn | null;
  /** Answers and refusals that the attacker got, by kind. */
  answers: Record<string, number>;
}

/** Measures so many calls of another organization, quiet and beside the attack. */
export async function measureBeside(
  daemon: TestDaemon,
  file: string,
  attack: Attack,
  prepared: unknown,
  calls: number,
): Promise<Measured> {
  await using bare = await startBare("{}");
  const other = await otherKey(daemon);
  const servers = {
    me: { url: `${daemon.url}/v1/me`, pid: daemon.pid, headers: { authorization: `Bearer ${other}` } },
    bare: { url: bare.url, pid: bare.pid, headers: {} },
  };
  const ask = (count: number) => felt(servers, count, attack.everyMs ?? EVERY_MS);
  await ask(WARM_UP);
  const quiet = await ask(calls);
  const before = turnsOf(daemon.home).length;
  const target: Target = { url: daemon.url, ssh_port: sshPort(daemon), key: daemon.apiKey, prepared };
  const end = await startAttack(file, join(daemon.home, "target.json"), target);
  const beside = await ask(calls);
  const answers = await end();
  const turns = turnsOf(daemon.home).slice(before);
  const longest = turns.toSorted((a, b) => b.cpu_ms - a.cpu_ms)[0] ?? null;
  const most = ALLOWANCE * Math.max(attack.mostP99Ms ?? MOST_P99_MS, (2 * quiet.me * beside.bare) / quiet.bare);
  return { quiet, beside, most, longest, answers };
}

let others = 0;

async function otherKey(daemon: TestDaemon): Promise<string> {
  const { stdout } = await daemon.cli(["org", "create", "--name", `Other ${++others}`, "--json"]);
  return (JSON.parse(stdout) as { api_key: string }).api_key;
}

interface Asked {
  url: string;
  pid: number;
  headers: Record<string, string>;
}

/** The p99 of calls that begin so long after one another, whether or not those before are answered. */
async function felt(servers: Record<keyof Felt, Asked>, count: number, everyMs: number): Promise<Felt> {
  const samples = { me: [] as number[], bare: [] as number[] };
  const under: Promise<void>[] = [];
  const take = async (kind: keyof Felt) => {
    const { url, pid, headers } = servers[kind];
    const [startedAt, delayedBefore] = [performance.now(), runDelay(pid)];
    const response = await fetch(url, { headers });
    await response.arrayBuffer();
    if (!response.ok) throw new Error(`${url}: ${response.status}`);
    const ms = performance.now() - startedAt;
    samples[kind].push(Math.max(0, ms - (runDelay(pid) - delayedBefore)));
  };
  const startedAt = performance.now();
  for (let n = 0; n < count; n++) {
    await Bun.sleep(Math.max(0, startedAt + n * everyMs - performance.now()));
    under.push(take("me"), take("bare"));
  }
  await Promise.all(under);
  return { me: summarize(samples.me).p99, bare: summarize(samples.bare).p99 };
}

/** Milliseconds that a process's first thread has been runnable without running: the second figure of its schedstat. */
function runDelay(pid: number): number {
  return Number(readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ")[1]) / 1e6;
}

/** The function that it returns ends the attack. */
async function startAttack(
  file: string,
  targetFile: string,
  target: Target,
): Promise<() => Promise<Record<string, number>>> {
  writeFileSync(targetFile, JSON.stringify(target));
  // It stands for programs of other hosts: it gives way to what is measured.
  const program = [process.execPath, join(import.meta.dirname, "attacker.ts"), file, targetFile];
  const child = spawn("nice", ["-n", "19", ...program], {
    stdio: ["ignore", "pipe", "inherit"],
    env: { ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: MOST_REQUESTS },
  });
  let said = "";
  child.stdout.on("data", (chunk) => {
    said += chunk;
  });
  const closed = once(child, "close");
  await until("the attack has begun", () => said !== "" || child.exitCode !== null, START_MS);
  return async () => {
    child.kill();
    await closed;
    const counts = said.split("\n")[1];
    if (!counts) throw new Error(`the attack has ended with ${JSON.stringify(said)}`);
    return JSON.parse(counts) as Record<string, number>;
  };
}
