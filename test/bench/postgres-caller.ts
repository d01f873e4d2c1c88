/**
 * Owns a program that asks PostgreSQL by one of the clients on trial, compiled as the daemon is; benchmark and client are told
 * by postgres.ts. Arguments: `latency URL COUNT` or `faults URL DEADLINE_MS`. Says what it saw on standard output, one line of
 * JSON for each. With `faults` it goes on until its standard input ends; a line there asks for what it holds.
 */
import { readdirSync } from "node:fs";
import { createInterface } from "node:readline";
import type { Address } from "../../daemon/cluster/address.ts";
import { callOnce } from "../harness/postgres-load.ts";
import type { Client, ClientName, Said } from "./postgres-said.ts";

/** Put here by who compiles this, so that no other client is in the program. */
declare const CLIENT: ClientName;

const LANES = 6;
const PAUSE_MS = 5;
const PAUSE_AFTER_FAULT_MS = 20;
const HEARTBEAT_MS = 1000;

const tell = (said: Said) => process.stdout.write(`${JSON.stringify(said)}\n`);
const now = () => performance.timeOrigin + performance.now();

async function makeClient(url: string): Promise<Client> {
  const { readAddresses } = await import("../../daemon/cluster/address.ts");
  const addresses = readAddresses(url);
  const [address] = addresses as [Address];
  if (CLIENT === "postgres-begin") {
    const { ByBegin } = await import("./postgres-begin.ts");
    return new ByBegin(address);
  }
  if (CLIENT === "postgres") {
    const [{ Connections }, { openSession }] = await Promise.all([
      import("../../daemon/cluster/connections.ts"),
      import("./postgres-session.ts"),
    ]);
    return new Connections({ addresses, heartbeatMs: HEARTBEAT_MS, open: openSession });
  }
  if (CLIENT === "pg") {
    const { Connections } = await import("../../daemon/cluster/connections.ts");
    return new Connections({ addresses, heartbeatMs: HEARTBEAT_MS });
  }
  throw new Error(`this program has no client ${CLIENT}`);
}

async function underFaults(url: string, deadlineMs: number): Promise<void> {
  process.on("uncaughtException", (error) => tell({ kind: "uncaught", error: String(error) }));
  process.on("unhandledRejection", (error) => tell({ kind: "uncaught", error: String(error) }));
  const client = await makeClient(url);
  let isOver = false;
  client.listen(
    "trial",
    () => tell({ kind: "hint", at: now() }),
    (isListening) => tell({ kind: "listening", at: now(), isListening }),
  );
  const lanes = Array.from({ length: LANES }, async (_, lane) => {
    while (!isOver) {
      const outcome = await callOnce(client, lane, deadlineMs);
      tell({ kind: "outcome", ...outcome });
      await Bun.sleep(outcome.outcome === "committed" ? PAUSE_MS : PAUSE_AFTER_FAULT_MS);
    }
  });
  for await (const _ of createInterface({ input: process.stdin })) {
    Bun.gc(true);
    const descriptors = readdirSync("/proc/self/fd").length;
    tell({ kind: "holds", descriptors, rssMib: process.memoryUsage().rss / 1024 ** 2 });
  }
  isOver = true;
  await Promise.all(lanes);
  client.close();
}

async function latency(url: string, count: number): Promise<void> {
  const client = await makeClient(url);
  const transactionMs: number[] = [];
  const statementMs: number[] = [];
  for (let index = 0; index < count; index++) {
    const from = performance.now();
    await client.transaction(async (run) => {
      const before = performance.now();
      await run("SELECT n FROM counters WHERE lane = $1", [0]);
      statementMs.push(performance.now() - before);
      await run("UPDATE counters SET n = n + 1 WHERE lane = $1 RETURNING n", [0]);
    }, 10_000);
    transactionMs.push(performance.now() - from);
  }
  tell({ kind: "latency", transactionMs, statementMs });
  client.close();
}

const [what, url = "", number = "0"] = process.argv.slice(2);
if (what === "latency") await latency(url, Number(number));
if (what === "faults") await underFaults(url, Number(number));
process.exit();
