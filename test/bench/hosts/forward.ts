/**
 * Benchmark of a request that enters at one host and is answered by another: a small GET over one connection and over 64, and the entry's
 * processor time, against an entry that forwards with `fetch`, with certificates and without, and against direct requests to the owner.
 * Each server is a separate process.
 */
import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { loadHostCertificate } from "../../../daemon/cluster/certificate.ts";
import { loadHttp } from "../load/http-load.ts";
import type { Bench } from "../report.ts";

const CONNECTIONS = 64;
const ROUNDS = 5;
const USUAL_COUNT = 10_000;
/** By one connection each takes as long as there and back does. */
const FEWER_ALONE = 5;
/** Of a processor, as /proc counts it. */
const TICK_MS = 10;
const HEADERS = { authorization: "Bearer key-of-nobody", accept: "application/json" };

export async function benchForward({ report, count = USUAL_COUNT }: Bench): Promise<void> {
  const directory = mkdtempSync("/tmp/roomd-bench-");
  await using servers = new AsyncDisposableStack();
  servers.defer(() => rmSync(directory, { recursive: true }));
  const start = async (...args: string[]) => servers.use(await Server.start(...args));
  for (const name of ["owner", "entry"]) await loadHostCertificate(join(directory, name));
  const owner = await start("owner", directory);
  const [httpUrl = "", tlsUrl = ""] = owner.urls;
  const roads = {
    forwarded: await start("ours", directory, httpUrl, tlsUrl),
    fetched: await start("fetch", directory, httpUrl, tlsUrl),
    fetched_plain: await start("plain", directory, httpUrl, tlsUrl),
    direct: owner,
  };
  const names = Object.keys(roads) as (keyof typeof roads)[];
  const figures = new Map(names.map((name) => [name, { alone: [], many: [], perSecond: [], cpu: [] } as Figures]));
  // The first round is not counted: code is compiled then.
  for (let round = -1; round < ROUNDS; round++) {
    for (const name of names) {
      const server = roads[name];
      const url = `${server.urls[0]}v1/rooms/bench`;
      const single = await loadHttp(url, HEADERS, 1, Math.ceil(count / FEWER_ALONE));
      const before = server.cpuMs();
      const many = await loadHttp(url, HEADERS, CONNECTIONS, count);
      const cpuMs = server.cpuMs() - before;
      const figure = figures.get(name);
      if (round < 0 || !figure) continue;
      figure.alone.push(...single.samplesMs);
      figure.many.push(...many.samplesMs);
      figure.perSecond.push((count / many.wallMs) * 1000);
      figure.cpu.push(cpuMs / count);
    }
  }
  for (const [name, { alone, many, perSecond, cpu }] of figures) {
    const held = (metric: string) => (name === "forwarded" ? `fetched_${metric}` : undefined);
    report.add(`${name}_alone`, "ms", alone, held("alone"));
    report.add(`${name}_${CONNECTIONS}_connections`, "ms", many, held(`${CONNECTIONS}_connections`));
    report.add(`${name}_per_second`, "1/s", perSecond, held("per_second"));
    report.add(`${name}_processor`, "ms", cpu, held("processor"));
  }
}

interface Figures {
  alone: number[];
  many: number[];
  perSecond: number[];
  cpu: number[];
}

class Server implements AsyncDisposable {
  readonly urls: string[];
  readonly #process: ChildProcess;

  private constructor(urls: string[], process: ChildProcess) {
    this.urls = urls;
    this.#process = process;
  }

  static async start(...args: string[]): Promise<Server> {
    const child = spawn(process.execPath, [join(import.meta.dirname, "forward-server.ts"), ...args], {
      stdio: ["ignore", "pipe", "inherit"],
    });
    const urls = await new Promise<string>((resolve, reject) => {
      createInterface({ input: child.stdout }).once("line", resolve);
      child.once("exit", (code) => reject(new Error(`${args[0]} ended with ${code}`)));
    });
    return new Server(JSON.parse(urls), child);
  }

  /** Processor time that it has used so far. */
  cpuMs(): number {
    const stat = readFileSync(`/proc/${this.#process.pid}/stat`, "utf8");
    const [user = 0, system = 0] = stat
      .slice(stat.lastIndexOf(")") + 2)
      .split(" ")
      .slice(11, 13)
      .map(Number);
    return (user + system) * TICK_MS;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    const exited = once(this.#process, "exit");
    if (this.#process.exitCode === null && this.#process.kill()) await exited;
  }
}
