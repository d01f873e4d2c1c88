/**
 * Owns the benchmark of PostgreSQL's clients: how long it takes to import, how fast its transactions are, and what becomes
 * of them while the server is killed, frozen, cut off, replaced, and its sessions ended. `--count`: so many seconds the longest
 * freeze and the longest cut last. Throws where the client that the daemon uses breaks a promise; those of others are told only.
 */
import { type ChildProcess, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { until } from "../harness/guests.ts";
import { Postgres, whyNoPostgres } from "../harness/postgres.ts";
import { brokenPromises, type Outcome, prepare } from "../harness/postgres-load.ts";
import { CLIENTS, type ClientName, type Said } from "./postgres-said.ts";
import type { Bench, Report } from "./report.ts";

const USED: ClientName = "pg";
const USUAL_LONGEST_S = 60;
const DURABLE = { fsync: "on" };
const SHORT_MS = 3000;
const ROUNDS = 10;
const DEADLINE_MS = 2000;
/** A timer may be late by this on a busy host. */
const LATE_MS = 250;
const COMMITTED = 1000;
const LATENCIES = 2000;
const IMPORTS = 20;
const RECOVERED_MS = 60_000;
const BUN = "node_modules/.bin/bun";
const FLAGS = "--compile --minify --bytecode --format=esm --no-compile-autoload-dotenv --no-compile-autoload-bunfig";

export async function benchPostgres({ report, count: longestS = USUAL_LONGEST_S }: Bench): Promise<void> {
  const missing = whyNoPostgres();
  if (missing !== null) throw new Error(missing);
  const home = mkdtempSync(join(tmpdir(), "roomd-pg-bench-"));
  try {
    benchImports(report, home);
    for (const client of CLIENTS) compile("test/bench/postgres-caller.ts", client, join(home, client));
    await benchLatency(report, home);
    for (const client of CLIENTS) await benchFaults(report, join(home, client), client, longestS);
  } finally {
    rmSync(home, { recursive: true, force: true });
  }
}

function compile(source: string, client: string, to: string): void {
  const args = ["build", source, ...FLAGS.split(" "), "--define", `CLIENT="${client}"`, "--outfile", to];
  const { status, stderr } = spawnSync(BUN, args, { encoding: "utf8" });
  if (status !== 0) throw new Error(`${client} was not compiled: ${stderr}`);
}

function benchImports(report: Report, home: string): void {
  for (const client of ["pg", "postgres"]) {
    const program = join(home, `import-${client}`);
    compile("test/bench/postgres-import.ts", client, program);
    const imports = Array.from({ length: IMPORTS }, () => Number(spawnSync(program, { encoding: "utf8" }).stdout));
    report.add(`${client}: import`, "ms", imports);
  }
}

/** In turns, so that what else the host does is in all of them. */
async function benchLatency(report: Report, home: string): Promise<void> {
  await using server = await Postgres.start({ settings: DURABLE });
  await prepare(server);
  const clients = CLIENTS.filter((client) => client !== "postgres-begin");
  for (const way of ["socket", "tcp", "tls"] as const) {
    const samples = new Map(
      clients.map((client) => [client, { transactionMs: [] as number[], statementMs: [] as number[] }]),
    );
    for (const client of [...clients, ...clients.toReversed()]) {
      const args = ["latency", server.url(way), String(LATENCIES / 2)];
      const { stdout, stderr } = spawnSync(join(home, client), args, { encoding: "utf8", maxBuffer: 2 ** 26 });
      const said = JSON.parse(stdout.trim() || `{"error":${JSON.stringify(stderr)}}`) as Said;
      if (said.kind !== "latency") throw new Error(`${client} by ${way}: ${JSON.stringify(said)}`);
      samples.get(client)?.transactionMs.push(...said.transactionMs);
      samples.get(client)?.statementMs.push(...said.statementMs);
    }
    for (const [client, { transactionMs, statementMs }] of samples) {
      report.add(`${client}: a transaction by ${way}`, "ms", transactionMs);
      report.add(`${client}: a statement by ${way}`, "ms", statementMs);
    }
  }
}

/** What happens to the server, and when it is over. `round` counts from 0. */
interface Fault {
  name: string;
  strike(server: Postgres, round: number): Promise<void>;
}

const faultsFor = (longestS: number): Fault[] => {
  // The first round is the long one: a connection that is only ever tried again later has time to give up.
  const lasting = (round: number) => Bun.sleep(round === 0 ? longestS * 1000 : SHORT_MS);
  return [
    {
      name: "killed",
      async strike(server) {
        await server.kill();
        await server.begin();
      },
    },
    {
      name: "frozen",
      async strike(server, round) {
        server.freeze();
        await lasting(round);
        server.thaw();
      },
    },
    {
      name: "cut off",
      async strike(server, round) {
        await server.cut();
        await lasting(round);
        await server.join();
      },
    },
    {
      name: "sessions ended",
      async strike(server) {
        for (let times = 0; times < 10; times++) {
          await server.terminateSessions();
          await Bun.sleep(30);
        }
      },
    },
    {
      name: "replaced",
      async strike(server, round) {
        await server.replace(round % 2 === 0 ? "other" : "data");
        if (round === 0) await prepare(server);
      },
    },
  ];
};

async function benchFaults(report: Report, program: string, client: ClientName, longestS: number): Promise<void> {
  for (const fault of faultsFor(longestS)) {
    await using server = await Postgres.start({ network: true, settings: DURABLE });
    await prepare(server);
    await using caller = new Caller(program, server.url("tcp"));
    const measured = await strikeOften(server, caller, fault);
    const uncaught = caller.uncaught.map((error) => `not to be caught: ${error}`);
    const broken = uncaught.concat(await brokenPromises(caller.outcomes, server, DEADLINE_MS + LATE_MS));
    const name = `${client}, ${fault.name}`;
    const outcomes = (outcome: Outcome["outcome"]) => caller.outcomes.filter((each) => each.outcome === outcome).length;
    report.add(`${name}: committed`, "1", [outcomes("committed")]);
    report.add(`${name}: failed`, "1", [outcomes("failed")]);
    report.add(`${name}: ambiguous`, "1", [outcomes("ambiguous")]);
    report.add(`${name}: longest call`, "ms", [Math.max(...caller.outcomes.map(({ ms }) => ms))]);
    if (measured.againMs.length > 0) report.add(`${name}: next success`, "ms", measured.againMs);
    if (measured.listeningMs.length > 0) report.add(`${name}: listening again`, "ms", measured.listeningMs);
    report.add(`${name}: descriptors more after ${ROUNDS} rounds`, "1", [measured.descriptors]);
    report.add(`${name}: memory more after ${ROUNDS} rounds`, "MiB", [measured.rssMib]);
    for (const each of counted([...measured.broken, ...broken])) console.error(`${name}: ${each}`);
    report.add(`${name}: promises broken`, "1", [broken.length + measured.broken.length]);
    if (client === USED && broken.length + measured.broken.length > 0) throw new Error(`${name}: a promise is broken`);
  }
}

interface Struck {
  /** From the moment that the server is back. */
  againMs: number[];
  listeningMs: number[];
  descriptors: number;
  rssMib: number;
  broken: string[];
}

async function strikeOften(server: Postgres, caller: Caller, fault: Fault): Promise<Struck> {
  const struck: Struck = { againMs: [], listeningMs: [], descriptors: 0, rssMib: 0, broken: [] };
  await caller.committedMore(COMMITTED / ROUNDS);
  let before = await caller.holds();
  for (let round = 0; round < ROUNDS; round++) {
    const [outcomes, changes] = [caller.outcomes.length, caller.changes.length];
    await fault.strike(server, round);
    const backAt = performance.timeOrigin + performance.now();
    try {
      const again = await until(
        "a transaction is committed again",
        () => caller.firstAfter(backAt, outcomes),
        RECOVERED_MS,
      );
      struck.againMs.push(again.at - backAt);
      await caller.committedMore(COMMITTED / ROUNDS);
      await caller.hears(server);
      const listening = caller.changes.slice(changes);
      const last = listening.at(-1);
      if (listening.some((each) => !each.isListening) && last) struck.listeningMs.push(Math.max(0, last.at - backAt));
      else struck.broken.push("nothing was said of the loss of LISTEN");
      // What every program takes once is not what leaks.
      if (round === 0) before = await caller.holds();
    } catch (error) {
      struck.broken.push(`round ${round}: ${error}`);
      break;
    }
  }
  // What has just been discarded is still being let go of.
  await Bun.sleep(DEADLINE_MS);
  const after = await caller.holds();
  await caller.end();
  return { ...struck, descriptors: after.descriptors - before.descriptors, rssMib: after.rssMib - before.rssMib };
}

/** Each once, with how often it was said. */
function counted(texts: readonly string[]): string[] {
  const times = new Map<string, number>();
  for (const text of texts) times.set(text, (times.get(text) ?? 0) + 1);
  return [...times].map(([text, count]) => (count === 1 ? text : `${count} times: ${text}`));
}

/** The program of postgres-caller.ts, under faults. */
class Caller implements AsyncDisposable {
  readonly outcomes: Outcome[] = [];
  readonly changes: Extract<Said, { kind: "listening" }>[] = [];
  readonly uncaught: string[] = [];
  readonly #process: ChildProcess;
  #hints = 0;
  #held: Extract<Said, { kind: "holds" }>[] = [];
  #committed = 0;

  constructor(program: string, url: string) {
    const child = spawn(program, ["faults", url, String(DEADLINE_MS)], { stdio: ["pipe", "pipe", "inherit"] });
    this.#process = child;
    createInterface({ input: child.stdout }).on("line", (line) => this.#hear(JSON.parse(line) as Said));
  }

  async committedMore(more: number): Promise<void> {
    const wanted = this.#committed + more;
    await this.#until(`${more} more are committed`, () => this.#committed >= wanted);
  }

  /** The first that was committed after `at`, begun or not; those before `from` are not looked at. */
  firstAfter(at: number, from: number): Outcome | undefined {
    this.#mustRun();
    return this.outcomes.slice(from).find((each) => each.outcome === "committed" && each.at > at);
  }

  /** Resolves when it has heard a notification of this server. */
  async hears(server: Postgres): Promise<void> {
    const before = this.#hints;
    await this.#until("it hears of a notification", async () => {
      await server.sql("NOTIFY trial");
      return this.#hints > before;
    });
  }

  async holds(): Promise<{ descriptors: number; rssMib: number }> {
    this.#held = [];
    this.#process.stdin?.write("\n");
    return await this.#until("it says what it holds", () => this.#held[0]);
  }

  async end(): Promise<void> {
    if (this.#process.exitCode !== null) return;
    const gone = once(this.#process, "exit");
    this.#process.stdin?.end();
    await gone;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#process.kill("SIGKILL");
  }

  #hear(said: Said): void {
    if (said.kind === "hint") this.#hints++;
    if (said.kind === "listening") this.changes.push(said);
    if (said.kind === "uncaught") this.uncaught.push(said.error);
    if (said.kind === "holds") this.#held.push(said);
    if (said.kind !== "outcome") return;
    this.outcomes.push(said);
    if (said.outcome === "committed") this.#committed++;
  }

  #until<T>(what: string, probe: () => T | Promise<T>): ReturnType<typeof until<T>> {
    return until(
      what,
      () => {
        this.#mustRun();
        return probe();
      },
      RECOVERED_MS,
    );
  }

  #mustRun(): void {
    const { exitCode, signalCode } = this.#process;
    if (exitCode !== null || signalCode !== null) throw new Error(`the program ended with ${exitCode ?? signalCode}`);
  }
}
