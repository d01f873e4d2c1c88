/**
 * The process of the measured organization. Arguments: the servers as JSON, the number of calls to each, and the milliseconds between two
 * calls. It prints the p99 of each server as JSON.
 *
 * A busy server waits for a processor longer than an idle one: the time in which the server's thread was runnable and did not run is
 * subtracted from a call's time.
 */
import { readFileSync } from "node:fs";
import { summarize } from "../../bench/load/stats.ts";

export interface Server {
  url: string;
  pid: number;
  headers: Record<string, string>;
}

/** The daemon's, and the bare server's. */
export interface Felt {
  me: number;
  bare: number;
}

/** Calls before the measured ones: connections are opened and code is compiled during them. */
const WARM_UP = 100;

/** Starts a call every `everyMs`, whether or not the previous ones are answered. */
async function felt(servers: Record<keyof Felt, Server>, count: number, everyMs: number): Promise<Felt> {
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

const [, , given = "", count = "", everyMs = ""] = process.argv;
const servers = JSON.parse(given) as Record<keyof Felt, Server>;
await felt(servers, WARM_UP, Number(everyMs));
console.log(JSON.stringify(await felt(servers, Number(count), Number(everyMs))));
process.exit();
