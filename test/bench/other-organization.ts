/**
 * Owns what one organization feels while another is busy: its calls at a steady pace, those of a server beside the daemon that does nothing
 * but answer, which feel what the host's processors are short of, and the programs that are busy meanwhile.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { CONFIG_KEYS, variableOf } from "../../daemon/core/config.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { until } from "../harness/guests.ts";
import { startBare } from "./bare.ts";
import type { Report } from "./report.ts";
import { timed } from "./sampling.ts";
import { summarize } from "./stats.ts";

/** Calls begin so long after one another, answered or not: a pause of the daemon is felt by all that fall into it. */
const EVERY_MS = 5;
/** One call in so many commits something, and another reads a file. */
const RARE = 8;
/** After one in so many the other server is asked. */
const BARE = 2;

export const PROBES = ["me", "commit", "file", "bare"] as const;

type Samples = Record<(typeof PROBES)[number], number[]>;

export interface Other extends AsyncDisposable {
  call(method: string, path: string, body?: object): Promise<void>;
  askBare(): Promise<void>;
}

/** As an operator has them: those of the tests are wider. */
export const USUAL_RATES = Object.fromEntries(
  Object.entries(CONFIG_KEYS).flatMap(([name, { default: value }]) =>
    /requests_(per_second|at_once)$/.test(name) ? [[variableOf(name), String(value)]] : [],
  ),
);

export const noSamples = (): Samples => ({ me: [], commit: [], file: [], bare: [] });

/** How much longer the slowest calls take beside something, and those of the other server: by that the host is short of processors. */
export function addRatios(report: Report, name: string, beside: Samples, quiet: Samples): void {
  const ratioOf = (kind: keyof Samples) => summarize(beside[kind]).p99 / summarize(quiet[kind]).p99;
  report.add(`${name}_me_p99_ratio`, "×", [ratioOf("me")], `${name}_bare_p99_ratio`, { of: "p50", most: 2 });
  report.add(`${name}_bare_p99_ratio`, "×", [ratioOf("bare")]);
}

export async function otherOrganization(daemon: TestDaemon): Promise<Other> {
  const { stdout } = await daemon.cli(["org", "create", "--name", "Other", "--json"]);
  const { api_key } = JSON.parse(stdout) as { api_key: string };
  const call: Other["call"] = async (method, path, body) => {
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
  const bare = await startBare("{}");
  const askBare = async () => void (await (await fetch(bare.url)).arrayBuffer());
  return { call, askBare, [Symbol.asyncDispose]: () => bare[Symbol.asyncDispose]() };
}

/** Makes so many calls at a steady pace, whether or not those before are answered. */
export async function probe({ call, askBare }: Other, count: number, into: Samples): Promise<void> {
  const under: Promise<void>[] = [];
  const take = async (kind: keyof Samples, work: () => Promise<void>) => void into[kind].push(await timed(work));
  const startedAt = performance.now();
  for (let taken = 0; taken < count; taken++) {
    await Bun.sleep(Math.max(0, startedAt + taken * EVERY_MS - performance.now()));
    under.push(take("me", () => call("GET", "/v1/me")));
    if (taken % BARE === 0) under.push(take("bare", askBare));
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

/** Starts a program of this directory that says "asking" once it is busy. What is returned ends it, and says how much it has done. */
export async function asking(program: string, ...args: string[]) {
  // It stands for programs of other hosts: it gives way to what is measured.
  const child = spawn("nice", ["-n", "19", process.execPath, join(import.meta.dirname, program), ...args], {
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
