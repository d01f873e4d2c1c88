/**
 * Transactions while their server is killed, frozen, cut off, or replaced, and while its sessions are terminated: each reported outcome is
 * true, nothing waits beyond its deadline, nothing is left open. ROOMD_TEST_LONG=1 runs a thousand for each, and freezes and cuts for a
 * minute.
 */
import { readFileSync } from "node:fs";
import { describe, expect, test } from "vitest";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections } from "../../../daemon/cluster/connections.ts";
import { LONG, shortOrLong, until } from "../../harness/guests.ts";
import { Postgres, whyNoPostgres } from "../../harness/hosts/postgres.ts";
import { brokenPromises, callOnce, type Outcome, prepare } from "../../harness/hosts/postgres-load.ts";

const LANES = 6;
const ROUNDS = 3;
const DEADLINE_MS = 500;
/** One event loop serves the calls at five servers here. */
const LONGEST_MS = DEADLINE_MS + 1500;
const PAUSE_MS = { usual: 1, afterFault: 20 };
const COMMITTED = LONG ? 1000 : 210;
/** Five servers in parallel with other tests, on any test machine. */
const MAX_MS = LONG ? 400_000 : 180_000;
const isRoot = process.getuid?.() === 0;
const reason = whyNoPostgres() ?? (isRoot ? null : "a network namespace needs root");
if (reason !== null) console.log(`PostgreSQL's faults: left out, because ${reason}`);
/** Longer than a heartbeat and its deadline: late replies are not lost. */
const lastingMs = reason === null ? shortOrLong("milliseconds of a frozen or cut off PostgreSQL", 1300, 60_000) : 0;

describe.skipIf(reason !== null)("while the server is", () => {
  test.concurrent.each([
    [
      "killed and started again",
      async (server: Postgres) => {
        await server.kill();
        await server.begin();
      },
    ],
    [
      "frozen",
      async (server: Postgres) => {
        server.freeze();
        await Bun.sleep(lastingMs);
        server.thaw();
      },
    ],
    [
      "cut off",
      async (server: Postgres) => {
        await server.cut();
        await Bun.sleep(lastingMs);
        await server.join();
      },
    ],
    [
      "made to terminate its sessions",
      async (server: Postgres) => {
        for (let times = 0; times < 5; times++) await server.terminateSessions();
      },
    ],
    [
      "replaced by another",
      async (server: Postgres, round: number) => {
        await server.replace(round % 2 === 0 ? "other" : "data");
        if (round === 0) await prepare(server);
      },
    ],
  ] as const)(
    "%s: the reported outcome of each transaction is true",
    async (_, strike) => {
      await using server = await Postgres.start({ network: true });
      await prepare(server);
      const connections = new Connections({ addresses: readAddresses(server.url()), heartbeatMs: DEADLINE_MS });
      const load = new Load(connections);
      let hints = 0;
      const changes: boolean[] = [];
      connections.listen(
        "trial",
        () => hints++,
        (isListening) => changes.push(isListening),
      );
      await load.committedMore(COMMITTED / ROUNDS);
      await until("the listener is connected", () => hints > 0);
      for (let round = 0; round < ROUNDS; round++) {
        const seenCount = changes.length;
        await strike(server, round);
        await load.committedMore(COMMITTED / ROUNDS);
        await until("the loss of the server is reported", () => changes.slice(seenCount).includes(false));
        await until("the listener has reconnected", () => changes.at(-1) === true);
        const before = hints;
        await server.sql("NOTIFY trial");
        await until("the notification is received", () => hints > before);
      }
      await load.end();
      connections.close();
      expect(await brokenPromises(load.outcomes, server, LONGEST_MS)).toEqual([]);
      expect(load.outcomes.filter(({ outcome }) => outcome === "failed").length).toBeGreaterThan(0);
      await until("no socket is open", () => socketsTo(server) === 0);
    },
    MAX_MS,
  );
});

/** Sockets that a process still has open, by the kernel's list: a socket without a process has no inode. */
function socketsTo({ port }: Postgres): number {
  const rows = readFileSync("/proc/self/net/tcp", "utf8").trim().split("\n").slice(1);
  const fields = rows.map((row) => row.trim().split(/\s+/));
  return fields.filter(([, , to, , , , , , , inode]) => parseInt(to?.split(":")[1] ?? "", 16) === port && inode !== "0")
    .length;
}

/** Transactions in several lanes, one after another in each, until it is ended. */
class Load {
  readonly outcomes: Outcome[] = [];
  readonly #lanes: Promise<unknown>;
  #isOver = false;

  constructor(connections: Connections) {
    const lane = async (_: unknown, lane: number) => {
      while (!this.#isOver) {
        const outcome = await callOnce(connections, lane, DEADLINE_MS);
        this.outcomes.push(outcome);
        await Bun.sleep(outcome.outcome === "committed" ? PAUSE_MS.usual : PAUSE_MS.afterFault);
      }
    };
    this.#lanes = Promise.all(Array.from({ length: LANES }, lane));
  }

  async committedMore(more: number): Promise<void> {
    const from = this.outcomes.length;
    const committed = () => this.outcomes.slice(from).filter(({ outcome }) => outcome === "committed").length;
    await until(`${more} more are committed`, () => committed() >= more, MAX_MS / 2);
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#lanes;
  }
}
