/**
 * One connection to PostgreSQL, by the package `pg`, never reconnected. The socket is ours, so that it can be closed immediately whatever
 * state the driver is in. Deadlines and transactions are in connections.ts.
 */
import { Socket } from "node:net";
import type { Address } from "./address.ts";

export interface QueryResult {
  rows: Record<string, unknown>[];
  /** The command tag: `COMMIT`, `ROLLBACK`, `INSERT`. */
  command: string;
}

export interface Session {
  /** The answer to the last of the statements; several are allowed without values. */
  run(text: string, values?: readonly unknown[]): Promise<QueryResult>;
  /** Resolves when the connection has closed, by either side. */
  readonly over: Promise<void>;
  /** Number of warnings by the server so far. */
  readonly warnings: number;
  /** Closes the socket now; pending queries fail. */
  discard(): void;
}

export interface SessionOptions {
  address: Address;
  /** Called for each notification of a channel that the session listens on. */
  onNotification?: ((channel: string) => void) | undefined;
}

/** Starts to connect. `opened` rejects if that fails, and after `discard`. */
export type OpenSession = (options: SessionOptions) => Promise<{ session: Session; opened: Promise<void> }>;

/** The driver is loaded on first use: a daemon without a cluster never loads it. */
export const openSession: OpenSession = async ({ address, onNotification }) => {
  const { default: pg } = await import("pg");
  const { tls, ...endpoint } = address;
  const socket = new Socket();
  const client = new pg.Client({
    ...endpoint,
    // For an empty one the driver would search the user's files.
    password: () => address.password,
    ssl: tls === null ? false : { rejectUnauthorized: tls.proven, ...(tls.authority && { ca: tls.authority }) },
    stream: () => socket,
    keepAlive: true,
    application_name: "roomd",
  });
  let warnings = 0;
  client.on("notice", ({ severity }) => {
    if (severity === "WARNING") warnings++;
  });
  client.on("notification", ({ channel }) => onNotification?.(channel));
  // A caller with a pending query gets the error as its answer, other callers by `over`.
  client.on("error", () => {});
  const over = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  let before: Promise<unknown> = Promise.resolve();
  const session: Session = {
    run: (text, values = []) => {
      // The driver accepts one query at a time, and callers may issue several concurrently.
      const answer = before.then(() => client.query<Record<string, unknown>>(text, [...values]));
      before = answer.catch(() => {});
      return answer.then(lastOf);
    },
    over,
    get warnings() {
      return warnings;
    },
    discard: () => {
      socket.destroy();
    },
  };
  return { session, opened: client.connect().then(() => {}) };
};

function lastOf(answer: QueryResult | QueryResult[]): QueryResult {
  const { rows = [], command = "" } = [answer].flat().at(-1) ?? {};
  return { rows, command };
}
