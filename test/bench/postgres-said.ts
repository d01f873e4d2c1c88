/** What the benchmark of PostgreSQL's clients (postgres.ts) and its program (postgres-caller.ts) say to each other. */
import type { Outcome, Transactions } from "../harness/postgres-load.ts";

/** `postgres-begin` is `postgres` as its manual has it, the others each connection by itself, as the daemon has them. */
export const CLIENTS = ["pg", "postgres", "postgres-begin"] as const;
export type ClientName = (typeof CLIENTS)[number];

/** What a client is asked for here. */
export interface Client extends Transactions {
  listen(channel: string, onHint: () => void, onChange: (isListening: boolean) => void): unknown;
  close(): void;
}

/** `at` is in milliseconds since 1970. */
export type Said =
  | ({ kind: "outcome" } & Outcome)
  | { kind: "listening"; at: number; isListening: boolean }
  | { kind: "hint"; at: number }
  | { kind: "uncaught"; error: string }
  | { kind: "holds"; descriptors: number; rssMib: number }
  | { kind: "latency"; transactionMs: number[]; statementMs: number[] };
