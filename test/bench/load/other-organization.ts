/**
 * Latency of one organization while another is busy: its calls at a fixed rate, calls to a bare server on the same host, which show a
 * shortage of processors, and the programs that generate the load.
 */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { CONFIG_KEYS, variableOf } from "../../../daemon/core/config/config.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { startBare } from "../bare.ts";
import type { Report } from "../report.ts";
import { timed } from "./sampling.ts";
import { summarize } from "./stats.ts";

/** Interval between starts of calls, independent of responses: all calls during a pause of the daemon are delayed. */
const EVERY_MS = 5;
/** One call in `RARE` commits a write, and another reads a file. */
const RARE = 8;
/** One call in `BARE` is followed by a call to the bare server. */
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

/** Ratio of the slowest calls' latency under load to idle, and the same for the bare server, which shows the shortage of processors. */
export function addRatios(report: Report, name: string, concurrent: Samples, quiet: Samples): void {
  const ratioOf = (kind: keyof Samples) => summarize(concurrent[kind]).p99 / summarize(quiet[kind]).p99;
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

/** Makes `count` calls at a fixed rate, without waiting for earlier responses. */
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

/**
 * Starts a program of this directory that prints "asking" once it generates load. The returned function ends it, and returns its number of
 * operations.
 */
export async function asking(program: string, ...args: string[]) {
  // It simulates programs on other hosts: it runs at low priority, so that it does not disturb the measurement.
  const child = spawn("nice", ["-n", "19", process.execPath, join(import.meta.dirname, program), ...args], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  let output = "";
  child.stdout.on("data", (chunk) => {
    output += chunk;
  });
  const closed = once(child, "close");
  await until(`${program} asks`, () => output !== "" || child.exitCode !== null);
  return async () => {
    child.kill();
    await closed;
    const made = /^asking\n(\d+)\n$/.exec(output)?.[1];
    if (made === undefined) throw new Error(`${program} has said ${JSON.stringify(output)}`);
    return Number(made);
  };
}
