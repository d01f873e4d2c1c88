/**
 * Transactions that reliably reveal a fault: each changes a row, adds one and reads it back with statements of different shapes, and has
 * its own token. The reported outcome of each is compared with the server's final data.
 */
import { randomUUID } from "node:crypto";
import type { Run } from "../../../daemon/cluster/connections.ts";
import type { Postgres } from "./postgres.ts";

export interface Transactions {
  transaction<T>(work: (run: Run) => Promise<T>, deadlineMs: number): Promise<T>;
}

export interface Outcome {
  token: string;
  outcome: "committed" | "failed" | "ambiguous";
  /** In milliseconds since 1970. */
  at: number;
  ms: number;
  error?: string;
  /** Rows that answer another question. */
  wrong?: string;
}

export async function prepare(server: Postgres): Promise<void> {
  await server.sql("CREATE TABLE counters (lane int PRIMARY KEY, n int NOT NULL, token text)");
  await server.sql("CREATE TABLE notes (token text PRIMARY KEY, lane int NOT NULL, n int NOT NULL)");
  await server.sql("INSERT INTO counters SELECT lane, 0 FROM generate_series(0, 15) lane");
}

/** One transaction, whatever becomes of it. */
export async function callOnce(by: Transactions, lane: number, deadlineMs: number): Promise<Outcome> {
  const token = randomUUID();
  const from = performance.now();
  const outcome = (outcome: Outcome["outcome"], more: Partial<Outcome> = {}): Outcome => {
    return { token, outcome, at: performance.timeOrigin + performance.now(), ms: performance.now() - from, ...more };
  };
  try {
    const wrong = await by.transaction((run) => work(run, lane, token), deadlineMs);
    return outcome("committed", wrong === undefined ? {} : { wrong });
  } catch (error) {
    const isAmbiguous = (error as { ambiguous?: boolean }).ambiguous === true;
    return outcome(isAmbiguous ? "ambiguous" : "failed", { error: String(error) });
  }
}

/** Returns the result if it does not answer the statement that was sent. */
async function work(run: Run, lane: number, token: string): Promise<string | undefined> {
  const changed = await run("UPDATE counters SET n = n + 1, token = $2 WHERE lane = $1 RETURNING lane, n, token", [
    lane,
    token,
  ]);
  const { n } = changed.rows[0] ?? {};
  await run("INSERT INTO notes (token, lane, n) VALUES ($1, $2, $3)", [token, lane, n]);
  const asked = randomUUID();
  const read = await run("SELECT $1::text AS asked, token, lane, n FROM notes WHERE token = $2", [asked, token]);
  const sum = await run(`SELECT ${lane} + $1::int AS sum`, [n]);
  const got = JSON.stringify([changed.rows, read.rows, sum.rows]);
  const expected = [[{ lane, n, token }], [{ asked, token, lane, n }], [{ sum: lane + Number(n) }]];
  return got === JSON.stringify(expected) ? undefined : got;
}

/** The broken promises, in words; checks all data that the server has ever served. No call may last longer than `longestMs`. */
export async function brokenPromises(
  outcomes: readonly Outcome[],
  server: Postgres,
  longestMs: number,
): Promise<string[]> {
  const texts = await server.everySql("SELECT token FROM notes");
  const present = new Set(texts.flatMap((text) => text.split("\n")));
  // Partially applied transactions.
  const halves = "SELECT lane FROM counters c WHERE n <> (SELECT count(*) FROM notes WHERE lane = c.lane)";
  const broken = (await server.everySql(halves)).filter(Boolean).map((lanes) => `done by half: lane ${lanes}`);
  for (const { token, outcome, ms, wrong, error } of outcomes) {
    if (wrong !== undefined) broken.push(`a wrong row: ${wrong}`);
    if (ms > longestMs) broken.push(`${outcome} after ${Math.round(ms)} ms: ${error}`);
    if (outcome === "committed" && !present.has(token)) broken.push("told committed, and is not there");
    if (outcome === "failed" && present.has(token)) broken.push(`told failed, and is there: ${error}`);
  }
  return broken;
}
