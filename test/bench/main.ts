/**
 * Command line of the benchmarks: `bun run bench NAME [--count N] [--memory MIB] [--rows NAMES] [--json FILE]`. Prints a table, then the
 * same as one line of JSON, then the missed limits. Exits with 1 if a limit is missed or a benchmark has no figures.
 */
import { existsSync, writeFileSync } from "node:fs";
import { parseArgs } from "node:util";
import { BINARY, TestDaemon, whyNoGuests } from "../harness/daemon.ts";
import { benchAudit } from "./audit.ts";
import { benchBulk } from "./bulk.ts";
import { benchCreate } from "./create.ts";
import { benchDrive } from "./drive.ts";
import { benchEgress } from "./egress.ts";
import { benchEntry } from "./entry.ts";
import { benchExec } from "./exec.ts";
import { benchFabric } from "./fabric.ts";
import { benchFairness } from "./fairness.ts";
import { benchFaults } from "./faults.ts";
import { benchFiles } from "./files.ts";
import { benchHostile } from "./hostile.ts";
import { benchCluster } from "./hosts/cluster.ts";
import { benchForward } from "./hosts/forward.ts";
import { benchImages } from "./images.ts";
import { NamedTime } from "./load/named-time.ts";
import { benchMcp } from "./mcp.ts";
import { benchPorts } from "./ports.ts";
import { type Bench, Report } from "./report.ts";
import { benchRequests } from "./requests.ts";
import { benchScale } from "./scale.ts";
import { benchSnapshot } from "./snapshot.ts";
import { benchSsh } from "./ssh.ts";
import { tableOf } from "./table.ts";
import { benchTemplates } from "./templates.ts";
import { benchTraces } from "./traces.ts";
import { benchTti } from "./tti.ts";
import { benchWatchers } from "./watchers.ts";

const BENCHMARKS = new Map<string, { about: string; run(bench: Bench): Promise<void> }>([
  ["create", { about: "a sandbox to its first command done, against a cold boot of its template", run: benchCreate }],
  ["tti", { about: "a sandbox to the end of `node -v` by computesdk's provider, against plain calls", run: benchTti }],
  [
    "snapshot",
    {
      about: "snapshot, fork, hibernate, resume and rollback of a sandbox whose memory is used, against creating one",
      run: benchSnapshot,
    },
  ],
  ["templates", { about: "a sandbox of each family of templates, against one of `default`", run: benchTemplates }],
  [
    "images",
    { about: "`true` in a sandbox while a hostile image is unpacked, against a quiet host", run: benchImages },
  ],
  ["exec", { about: "`true` and 64 MiB of output, against calls that reach no guest", run: benchExec }],
  ["drive", { about: "files written, read, streamed and listed, against plain system calls", run: benchDrive }],
  ["files", { about: "20 MiB written to and read from a sandbox by HTTP, against the drive", run: benchFiles }],
  ["ssh", { about: "`true` by ssh and 64 MiB by scp either way, against a local sshd", run: benchSsh }],
  [
    "ports",
    { about: "calls, messages and 64 MiB either way by an exposed port, against a local server", run: benchPorts },
  ],
  ["egress", { about: "connections and 64 MiB either way to servers outside, against the host", run: benchEgress }],
  ["fabric", { about: "messages kept, waited for and fanned out, against NATS JetStream", run: benchFabric }],
  ["audit", { about: "100,000 records verified, searched and exported, against hashing them", run: benchAudit }],
  [
    "bulk",
    { about: "calls beside one sandbox that moves 1 GiB by each way there is, against a quiet host", run: benchBulk },
  ],
  [
    "fairness",
    {
      about: "calls of one organization beside another that takes all it can, against a quiet host",
      run: benchFairness,
    },
  ],
  [
    "hostile",
    {
      about: "calls of one organization beside each attack of the hostile suite, against a quiet and a bare server",
      run: benchHostile,
    },
  ],
  [
    "watchers",
    {
      about: "calls of one organization while 20 watch a busy room of another, against a quiet host",
      run: benchWatchers,
    },
  ],
  ["mcp", { about: "a tool's call against the same call over REST", run: benchMcp }],
  [
    "requests",
    { about: "one room read by 64 connections, against a bare server; what a key costs", run: benchRequests },
  ],
  [
    "cluster",
    {
      about: "a room made on a host alone, on one of one and of three, against a commit of PostgreSQL",
      run: benchCluster,
    },
  ],
  [
    "entry",
    {
      about: "a room read and a message kept, by its host of two and by the other, against a host alone and nginx",
      run: benchEntry,
    },
  ],
  [
    "forward",
    {
      about: "a small answer by way of another host, against `fetch` as a proxy and against asking it there",
      run: benchForward,
    },
  ],
  [
    "scale",
    {
      about: "what up to 900 idle sandboxes cost the daemon, and its calls beside them, played guests",
      run: benchScale,
    },
  ],
  ["traces", { about: "messages and reads with a trace, told to a collector or not, against none", run: benchTraces }],
  [
    "faults",
    {
      about: "`true` in one sandbox while others are stopped or killed, and while memory or a disk is full",
      run: benchFaults,
    },
  ],
]);

const USAGE = [
  "usage: bun run bench NAME [--count N] [--memory MIB] [--rows NAMES] [--json FILE]",
  ...[...BENCHMARKS].map(([name, { about }]) => `  ${name.padEnd(11)}${about}`),
  "  --memory   the most memory that one sandbox is to use, where a benchmark measures several sizes",
  "  --rows     of `hostile`: the attacks to measure, with commas between",
].join("\n");

function refuse(reason: string): never {
  console.error(reason);
  process.exit(2);
}

function readArguments() {
  try {
    const { positionals, values } = parseArgs({
      allowPositionals: true,
      options: {
        count: { type: "string" },
        memory: { type: "string" },
        rows: { type: "string" },
        json: { type: "string" },
      },
    });
    const [name = "", ...more] = positionals;
    const benchmark = BENCHMARKS.get(name);
    if (!benchmark || more.length > 0) refuse(USAGE);
    const count = wholeNumber("count", values.count);
    const mostMemoryMib = wholeNumber("memory", values.memory);
    return { name, benchmark, count, mostMemoryMib, rows: values.rows?.split(","), json: values.json };
  } catch (error) {
    return refuse(`${error instanceof Error ? error.message : error}\n${USAGE}`);
  }
}

function wholeNumber(option: string, text: string | undefined): number | undefined {
  const value = text === undefined ? undefined : Number(text);
  if (value !== undefined && !(Number.isInteger(value) && value > 0))
    refuse(`--${option} must be a whole number above 0`);
  return value;
}

const { name, benchmark, count, mostMemoryMib, rows, json } = readArguments();
if (!existsSync(BINARY)) refuse(`there is no ${BINARY}: run packaging/build`);

const report = new Report(name);
const daemons = new AsyncDisposableStack();
const namedTime = new NamedTime();
const watches = new AsyncDisposableStack();
let interrupted = false;

// Guests outlive their daemon, so an interrupted benchmark must end them itself.
for (const signal of ["SIGINT", "SIGTERM"] as const) {
  process.once(signal, () => {
    interrupted = true;
    void daemons.disposeAsync();
  });
}

async function start(options: Parameters<Bench["start"]>[0]): Promise<TestDaemon> {
  const missing = options.guests ? whyNoGuests() : null;
  if (missing) throw new Error(missing);
  const daemon = daemons.use(await TestDaemon.start(options));
  watches.use(await namedTime.watch(daemon));
  if (options.guests) report.acceleration = String((await daemon.ok("GET", "/health")).acceleration);
  return daemon;
}

try {
  await benchmark.run({ report, count, mostMemoryMib, rows, start, watch: (daemon) => namedTime.watch(daemon) });
  await watches.disposeAsync();
  namedTime.addTo(report);
  const line = report.json();
  console.log(`${tableOf(report.measures())}\n\n${line}`);
  if (json !== undefined) writeFileSync(json, `${line}\n`);
  const missed = report.missed();
  for (const miss of missed) console.error(`missed: ${miss}`);
  if (missed.length > 0) process.exitCode = 1;
} catch (error) {
  process.exitCode = 1;
  if (!interrupted) console.error(error);
} finally {
  await daemons.disposeAsync();
}
