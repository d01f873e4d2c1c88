/**
 * Runs simulations, one per seed, in a separate process: `bun test/harness/simulation/main.ts FIRST [COUNT]`. Prints a line of JSON for
 * each failure, and one for all. With --trace it prints all events, with --mutation the daemon has a fault.
 */
import { existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { isMutation, MUTATIONS } from "./mutations.ts";
import { installRuntime } from "./runtime.ts";

const { positionals, values } = parseArgs({
  allowPositionals: true,
  options: {
    /** A fault in the daemon; ends with the first seed that fails. */
    ...{ mutation: { type: "string" }, "until-failure": { type: "boolean" } },
    ...{ trace: { type: "boolean" }, seconds: { type: "string" } },
    /** Without faults of the database; a file for the statements that it carries out. */
    ...{ steady: { type: "boolean" }, statements: { type: "string" } },
  },
});
const mutation = values.mutation ?? null;
if (mutation !== null && !isMutation(mutation)) throw new Error(`no mutation is named ${mutation}`);
installRuntime(mutation === null ? [] : MUTATIONS[mutation]);
const { Pool } = await import("./sqlite.ts");
const { simulate } = await import("./simulation.ts");
const { openConnection } = await import("../../../daemon/db/client.ts");
const { migrate } = await import("../../../daemon/db/migrate.ts");

const [first = 1, count = 1] = positionals.map(Number);
/** Of processor time. */
const mostSeconds = Number(values.seconds ?? Number.POSITIVE_INFINITY);
const isOver = () => (process.cpuUsage().user + process.cpuUsage().system) / 1e6 > mostSeconds;

const memory = existsSync("/dev/shm") ? "/dev/shm" : tmpdir();
const directory = mkdtempSync(join(memory, "roomd-simulation-"));
const schema = join(directory, "schema.db");
const connection = openConnection(schema);
migrate(connection);
connection.close();
const pool = new Pool(directory, schema);

let failure: string | null = null;
process.on("unhandledRejection", (error) => {
  failure = `a promise was rejected, and nothing heard of it: ${error instanceof Error ? error.stack : String(error)}`;
});

const startedAt = performance.now();
const total = { seeds: 0, failed: 0, events: 0, acknowledged: 0, refused: 0 };
const hashes: Record<string, string> = {};
for (let seed = first; seed < first + count && !isOver() && !(total.failed > 0 && values["until-failure"]); seed++) {
  const outcome = simulate({
    ...{ seed, directory, pool, isSteady: values.steady === true },
    ...(values.trace && { trace: (line: string) => console.log(line) }),
    ...(values.statements && {
      statements: (hosts: readonly string[], recorded: unknown) =>
        writeFileSync(values.statements as string, JSON.stringify({ hosts, recorded })),
    }),
  });
  await new Promise((resolve) => setImmediate(resolve));
  if (failure !== null) outcome.violations.push(failure);
  failure = null;
  total.seeds++;
  total.events += outcome.events;
  total.acknowledged += outcome.acknowledged;
  total.refused += outcome.refused;
  hashes[seed] = outcome.hash;
  if (outcome.violations.length === 0) continue;
  total.failed++;
  console.log(JSON.stringify({ seed, violations: outcome.violations, faults: outcome.faults }));
}
const ms = Math.round(performance.now() - startedAt);
console.log(JSON.stringify({ ...total, ms, hashes }));
rmSync(directory, { recursive: true });
process.exit(total.failed > 0 ? 1 : 0);
