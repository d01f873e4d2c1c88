/**
 * Owns one connection to PostgreSQL, by the package `pg`: from its first byte to its end, never a second time. The socket is
 * ours, so that it can be closed at once whatever state the driver is in. Leaves deadlines and transactions to connections.ts.
 */
import { Socket } from "node:net";
import type { Address } from "./address.ts";

export interface Answer {
  rows: Record<string, unknown>[];
  /** The tag of what was done: `COMMIT`, `ROLLBACK`, `INSERT`. */
  command: string;
}

export interface Session {
  /** The answer to the last of the statements; there may be several where there are no values. */
  run(text: string, values?: readonly unknown[]): Promise<Answer>;
  /** Resolves when it is over, whoever ended it. */
  readonly over: Promise<void>;
  /** How often the server warned so far. */
  readonly warnings: number;
  /** Closes the socket now; what is being asked fails. */
  discard(): void;
}

export interface SessionOptions {
  address: Address;
  /** Called for every notification of a channel that is listened to. */
  onNotification?: ((channel: string) => void) | undefined;
}

/** Begins to connect. `opened` rejects where it fails, and after `discard`. */
export type OpenSession = (options: SessionOptions) => Promise<{ session: Session; opened: Promise<void> }>;

/** The driver is loaded by who needs it first: a daemon without a cluster never does. */
export const openSession: OpenSession = async ({ address, onNotification }) => {
  const { default: pg } = await import("pg");
  const { tls, ...where } = address;
  const socket = new Socket();
  const client = new pg.Client({
    ...where,
    // An empty one would be looked for in files of the user's.
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
  // Who asks hears of it by the answer, who does not by `over`.
  client.on("error", () => {});
  const over = new Promise<void>((resolve) => {
    socket.once("close", () => resolve());
  });
  let before: Promise<unknown> = Promise.resolve();
  const session: Session = {
    run: (text, values = []) => {
      // The driver wants one at a time, and callers may ask for several at once.
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

function lastOf(answer: Answer | Answer[]): Answer {
  const { rows = [], command = "" } = [answer].flat().at(-1) ?? {};
  return { rows, command };
}
