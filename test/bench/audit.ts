/**
 * Benchmark of the audit: append, verification, search and export of a long chain, and the latency of other calls during them. Yardstick of
 * verification: the same records' bytes read from memory and hashed one by one.
 */
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { now } from "../../daemon/core/clock.ts";
import { type Connection, openConnection } from "../../daemon/db/client.ts";
import { listAudit } from "../../daemon/domain/audit/rows.ts";
import { appendAudit } from "../../daemon/domain/audit/store.ts";
import type { TestDaemon } from "../harness/daemon.ts";
import { timed } from "./load/sampling.ts";
import { summarize } from "./load/stats.ts";
import type { Bench, Report } from "./report.ts";

const USUAL_COUNT = 100_000;
const BATCH = 1000;
const ROUNDS = 3;
const CALLS_ALONE = 500;
/** Limit for 100,000 records. */
const MAX_MS = 5000;

export async function benchAudit({ report, count = USUAL_COUNT, start }: Bench): Promise<void> {
  const daemon = await start({ guests: false });
  await daemon.room("bench");
  const { room_uid } = await daemon.ok("GET", "/v1/rooms/bench");
  const connection = openConnection(join(daemon.dataDir, "roomd.db"));
  try {
    await appendMany(report, daemon, connection, { count, room_uid });
    measureHashing(report, daemon, connection, count);
  } finally {
    connection.close();
  }
  const verify = async () => {
    const { ok, to_seq } = await daemon.ok("GET", "/v1/orgs/self/audit/verify");
    if (!ok || to_seq < count) throw new Error(`the chain is not whole: ${to_seq}`);
  };
  const most = (MAX_MS * count) / USUAL_COUNT;
  await rounds(report, `verify_${count}`, verify, `sha256_of_${count}`, { of: "p99", most });
  await rounds(report, "find_what_is_rare", () => daemon.ok("GET", "/v1/orgs/self/audit?event=nothing."));
  await rounds(report, "summarize", () => daemon.ok("GET", "/v1/orgs/self/audit/summary"));
  await rounds(report, "export", () => exported(daemon, count));
  await benchOthers(report, daemon, verify);
  await benchBeside(report, daemon);
}

/** Reads of any size; the last is the largest page. */
const READS = {
  summary: "/v1/orgs/self/audit/summary",
  verify: "/v1/orgs/self/audit/verify",
  timeline: "/v1/rooms/bench/timeline?limit=20",
  page: "/v1/orgs/self/audit?limit=1000",
};
const READERS = 8;
const ME_CALLS = 300;
const ME_EVERY_MS = 5;

/**
 * `me` at a fixed rate, idle and concurrent with eight readers of each kind; and the processor time of the event loop's thread for a read.
 */
async function benchBeside(report: Report, daemon: TestDaemon): Promise<void> {
  for (const [name, path] of Object.entries(READS)) {
    const quiet = await steadyMe(daemon);
    let isOver = false;
    let reads = 0;
    const reader = async () => {
      for (; !isOver; reads++) await daemon.ok("GET", path);
    };
    const cpuBefore = loopMs(daemon);
    const readers = Promise.all(Array.from({ length: READERS }, reader));
    const concurrent = await steadyMe(daemon);
    isOver = true;
    await readers;
    report.add(`me_beside_${name}`, "ms", concurrent, `me_before_${name}`);
    report.add(`me_before_${name}`, "ms", quiet);
    report.add(`me_p99_beside_${name}`, "×", [summarize(concurrent).p99 / summarize(quiet).p99]);
    // With the calls of `me` taken for as long as those of reads.
    report.add(`loop_of_${name}`, "ms", [(loopMs(daemon) - cpuBefore) / (reads + ME_CALLS)]);
    report.add(`${name}_reads`, "1", [reads]);
  }
}

async function steadyMe(daemon: TestDaemon): Promise<number[]> {
  const samples: number[] = [];
  const startedAt = performance.now();
  const calls: Promise<void>[] = [];
  for (let n = 0; n < ME_CALLS; n++) {
    await Bun.sleep(Math.max(0, startedAt + n * ME_EVERY_MS - performance.now()));
    calls.push(timed(() => daemon.ok("GET", "/v1/me")).then((ms) => void samples.push(ms)));
  }
  await Promise.all(calls);
  return samples;
}

/** Processor time of the daemon's first thread. */
function loopMs({ pid }: TestDaemon): number {
  const [ns] = readFileSync(`/proc/${pid}/task/${pid}/schedstat`, "utf8").split(" ");
  return Number(ns) / 1e6;
}

async function appendMany(
  report: Report,
  daemon: TestDaemon,
  connection: Connection,
  { count, room_uid }: { count: number; room_uid: string },
): Promise<void> {
  const samples: number[] = [];
  for (let done = 0; done < count; done += BATCH) {
    connection.execute("BEGIN IMMEDIATE");
    const batchMs = await timed(async () => {
      for (let n = done; n < Math.min(done + BATCH, count); n++)
        append(connection, { org_id: daemon.orgId, room_uid }, n);
    });
    connection.execute("COMMIT");
    samples.push(batchMs / BATCH);
  }
  report.add("append", "ms", samples);
}

function append({ queries }: Connection, owner: { org_id: string; room_uid: string }, n: number): void {
  appendAudit(queries, {
    event: n % 3 ? "exec.run" : "drive.written",
    outcome: n % 7 ? "success" : "error",
    at: now(),
    ...owner,
    room_id: `room-${n % 10}`,
    agent_id: `worker-${n % 50}`,
    actor: { type: "key", id: "kid_01ARZ3NDEKTSV4RRFFQ69G5FAV", name: "bench" },
    source: "rest",
    request_id: `req_${n}`,
    ip: "127.0.0.1",
    status: 200,
    duration_ms: n / 100,
    details: { argv: ["make", "-j2", `target-${n}`], exit_code: 0 },
  });
}

function measureHashing(report: Report, daemon: TestDaemon, { queries }: Connection, count: number): void {
  const rows = listAudit(queries, { org_id: daemon.orgId, order: "asc", limit: count });
  const samples = Array.from({ length: ROUNDS }, () => {
    const startedAt = performance.now();
    for (const row of rows) hash("sha256", JSON.stringify(row));
    return performance.now() - startedAt;
  });
  report.add(`sha256_of_${count}`, "ms", samples);
}

async function rounds(
  report: Report,
  name: string,
  run: () => Promise<unknown>,
  yardstick?: string,
  limit?: Parameters<Report["add"]>[4],
): Promise<void> {
  const samples: number[] = [];
  for (let round = 0; round < ROUNDS; round++) samples.push(await timed(run));
  report.add(name, "ms", samples, yardstick, limit);
}

async function exported(daemon: TestDaemon, count: number): Promise<void> {
  const headers = { accept: "application/x-ndjson", authorization: `Bearer ${daemon.apiKey}` };
  const response = await fetch(`${daemon.url}/v1/orgs/self/audit`, { headers });
  let lines = 0;
  for await (const part of response.body ?? []) for (const byte of part) if (byte === 10) lines++;
  if (lines < count) throw new Error(`${lines} of ${count} records were exported`);
}

/** A call that reads one row, alone and while chains are verified one after another. */
async function benchOthers(report: Report, daemon: TestDaemon, verify: () => Promise<void>): Promise<void> {
  const call = () => timed(() => daemon.ok("GET", "/v1/rooms/bench"));
  const unloaded: number[] = [];
  for (let n = 0; n < CALLS_ALONE; n++) unloaded.push(await call());
  report.add("room_get", "ms", unloaded);
  const meanwhile: number[] = [];
  let isOver = false;
  const verified = verify().finally(() => {
    isOver = true;
  });
  while (!isOver) meanwhile.push(await call());
  await verified;
  report.add("room_get_while_verifying", "ms", meanwhile, "room_get");
}
