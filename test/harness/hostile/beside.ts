/**
 * The effect of an attack on another organization: its calls at a steady pace, idle and during the attack, the calls to a bare server
 * process in the same time, which show a shortage of the host's processors, and the longest turn of the daemon's event loop in that time.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startBare } from "../../bench/bare.ts";
import { sshPort } from "../clients/ssh-client.ts";
import type { TestDaemon } from "../daemon.ts";
import { passesOf } from "../event-loop/passes.ts";
import { type RecordedTurn, turnsOf } from "../event-loop/turns.ts";
import { until } from "../guests.ts";
import type { Attack, Target } from "./attack.ts";
import type { Felt, Server } from "./caller.ts";

const EVERY_MS = 5;
const MAX_P99_MS = 10;
const START_MS = 60_000;
/** Under way at a time in one process. */
const MAX_REQUESTS = "16384";

export interface Measured {
  quiet: Felt;
  beside: Felt;
  /** Longest p99 that passes on an idle host. */
  most: number;
  longest: RecordedTurn | null;
  /** Longest pass of the event loop, in milliseconds of processor time; 0 if they are not recorded. */
  pass: number;
  /** Answers and refusals that the attacker got, by kind. */
  answers: Record<string, number>;
}

/** Measures `calls` calls of another organization, idle and during the attack, which the result of `during` accompanies. */
export async function measureBeside(
  daemon: TestDaemon,
  file: string,
  attack: Attack,
  prepared: unknown,
  calls: number,
  during = async (): Promise<AsyncDisposable> => new AsyncDisposableStack(),
): Promise<Measured> {
  await using bare = await startBare("{}");
  const other = await otherKey(daemon);
  const servers: Record<keyof Felt, Server> = {
    me: { url: `${daemon.url}/v1/me`, pid: daemon.pid, headers: { authorization: `Bearer ${other}` } },
    bare: { url: bare.url, pid: bare.pid, headers: {} },
  };
  const ask = (count: number) => felt(servers, count, attack.everyMs ?? EVERY_MS);
  const quiet = await ask(calls);
  const before = { turns: turnsOf(daemon.home).length, passes: passesOf(daemon).length };
  const target: Target = { url: daemon.url, ssh_port: sshPort(daemon), key: daemon.apiKey, prepared };
  const end = await startAttack(file, join(daemon.home, "target.json"), target);
  const accompanied = await during();
  const concurrent = await ask(calls);
  await accompanied[Symbol.asyncDispose]();
  const answers = await end();
  const turns = turnsOf(daemon.home).slice(before.turns);
  const longest = turns.toSorted((a, b) => b.cpu_ms - a.cpu_ms)[0] ?? null;
  const most = Math.max(attack.mostP99Ms ?? MAX_P99_MS, (2 * quiet.me * concurrent.bare) / quiet.bare);
  const pass = Math.max(0, ...passesOf(daemon).slice(before.passes));
  return { quiet, beside: concurrent, most, longest, pass, answers };
}

let others = 0;

async function otherKey(daemon: TestDaemon): Promise<string> {
  const { status, stdout, stderr } = await daemon.cli(["org", "create", "--name", `Other ${++others}`, "--json"]);
  if (status !== 0) throw new Error(`no other organization: ${stderr}`);
  return (JSON.parse(stdout) as { api_key: string }).api_key;
}

/** Measurement by a separate process: all of its calls may be unanswered concurrently. */
async function felt(servers: Record<keyof Felt, Server>, count: number, everyMs: number): Promise<Felt> {
  const program = [join(import.meta.dirname, "caller.ts"), JSON.stringify(servers), String(count), String(everyMs)];
  const child = spawn(process.execPath, program, { stdio: ["ignore", "pipe", "inherit"], env: environment() });
  const [output, [code]] = await Promise.all([text(child.stdout), once(child, "close")]);
  if (code !== 0) throw new Error(`the calls that are measured have ended with ${code}`);
  return JSON.parse(output) as Felt;
}

const environment = () => ({ ...process.env, BUN_CONFIG_MAX_HTTP_REQUESTS: MAX_REQUESTS });

/** The function that it returns ends the attack. */
async function startAttack(
  file: string,
  targetFile: string,
  target: Target,
): Promise<() => Promise<Record<string, number>>> {
  writeFileSync(targetFile, JSON.stringify(target));
  // It represents programs of other hosts: it yields the processors to the measured processes.
  const program = [process.execPath, join(import.meta.dirname, "attacker.ts"), file, targetFile];
  const child = spawn("nice", ["-n", "19", ...program], {
    stdio: ["ignore", "pipe", "inherit"],
    env: environment(),
  });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  const closed = once(child, "close");
  await until("the attack has begun", () => output !== "" || child.exitCode !== null, START_MS);
  return async () => {
    child.kill();
    await closed;
    const counts = output.split("\n")[1];
    if (!counts) throw new Error(`the attack has ended with ${JSON.stringify(output)}`);
    return JSON.parse(counts) as Record<string, number>;
  };
}
