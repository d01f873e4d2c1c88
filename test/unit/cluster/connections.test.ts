/** PostgreSQL transactions, against a real server and its failures. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections, type Run } from "../../../daemon/cluster/connections.ts";
import type { OpenSession } from "../../../daemon/cluster/session.ts";
import { DirectoryUnavailable, type UnavailableReason } from "../../../daemon/cluster/unavailable.ts";
import { until } from "../../harness/guests.ts";
import { Postgres, whyNoPostgres } from "../../harness/hosts/postgres.ts";

const DEADLINE_MS = 5000;
const SHORT_MS = 400;
const HEARTBEAT_MS = 300;
const reason = whyNoPostgres();
if (reason !== null) console.log(`transactions by PostgreSQL: left out, because ${reason}`);

describe.skipIf(reason !== null)("transactions by PostgreSQL", () => {
  let server: Postgres;
  let connections: Connections;
  beforeAll(async () => {
    server = await Postgres.start();
  }, 60_000);
  afterAll(() => server?.[Symbol.asyncDispose]());
  beforeEach(async () => {
    await server.sql("DROP TABLE IF EXISTS t; CREATE TABLE t (n int UNIQUE DEFERRABLE INITIALLY DEFERRED)");
    connections = connect(server.url());
    return () => connections.close();
  });
  const connect = (url: string) => new Connections({ addresses: readAddresses(url), heartbeatMs: HEARTBEAT_MS });
  const insert = (n: number) => (run: Run) => run("INSERT INTO t VALUES ($1) RETURNING n", [n]);
  const rows = async () => (await server.sql("SELECT n FROM t ORDER BY n")).split("\n").filter(Boolean).map(Number);
  const sessions = async (more = "") =>
    Number(await server.sql(`SELECT count(*) FROM pg_stat_activity WHERE application_name = 'roomd' ${more}`));
  const failure = (work: Promise<unknown>) =>
    work.then(
      () => null,
      (error: unknown) => error,
    );
  const expectAway = async (work: Promise<unknown>, reasons: UnavailableReason[], ambiguous = false) => {
    const error = await failure(work);
    expect(error).toBeInstanceOf(DirectoryUnavailable);
    expect(reasons).toContain((error as DirectoryUnavailable).reason);
    expect((error as DirectoryUnavailable).ambiguous).toBe(ambiguous);
  };

  describe("connection routes", () => {
    test.each(["socket", "tcp", "tls"] as const)("by %s: a commit is stored", async (way) => {
      const by = connect(server.url(way));
      expect((await by.transaction(insert(1), DEADLINE_MS)).rows).toEqual([{ n: 1 }]);
      expect(await rows()).toEqual([1]);
      by.close();
    });

    test("commits wait for the disk despite the role's setting; stricter settings stay and are reported", async () => {
      const level = (by: Connections) =>
        by.transaction(async (run) => (await run("SHOW synchronous_commit")).rows[0]?.synchronous_commit, DEADLINE_MS);
      for (const [set, used] of [
        ["off", "on"],
        ["local", "on"],
        ["remote_apply", "remote_apply"],
      ]) {
        await server.sql(`ALTER ROLE roomd SET synchronous_commit = ${set}`);
        const by = connect(server.url());
        expect(await level(by)).toBe(used);
        expect(by.settings).toEqual({ fsync: false, full_page_writes: true, synchronous_standby_names: "" });
        by.close();
      }
      await server.sql("ALTER ROLE roomd RESET synchronous_commit");
    });

    test.each([
      ["another password", (url: string) => url.replace(/:[0-9a-f]{24}@/, ":wrong@"), "refused"],
      ["no password", (url: string) => url.replace(/:[0-9a-f]{24}@/, "@"), "unreachable"],
      ["another database", (url: string) => url.replace("/postgres?", "/none?"), "refused"],
      ["another port", (url: string) => url.replace(/:\d+\//, ":1/"), "unreachable"],
      ["an authority that is not its own", (url: string) => url.replace(/sslrootcert=.*/, ""), "unreachable"],
      ["a name that is not in its certificate", (url: string) => url.replace("localhost", "127.0.0.1"), "unreachable"],
    ] as const)("with %s the connection fails", async (_, change, reason) => {
      const by = connect(change(server.url("tls")));
      await expectAway(by.transaction(insert(1), DEADLINE_MS), [reason]);
      by.close();
      expect(await rows()).toEqual([]);
    });

    test("a server that is too old is rejected", async () => {
      const open: OpenSession = async () => {
        const over = Promise.withResolvers<void>();
        const run = async () => ({ rows: [{ standby: false, version: 130_021 }], command: "SELECT" });
        return {
          session: { run, over: over.promise, warnings: 0, discard: over.resolve },
          opened: Promise.resolve(),
        };
      };
      const old = new Connections({ addresses: readAddresses(server.url()), open });
      await expectAway(old.transaction(insert(1), DEADLINE_MS), ["too_old"]);
    });
  });

  test("concurrent statements run one after another", async () => {
    const warned: Error[] = [];
    const warn = (warning: Error) => warned.push(warning);
    process.on("warning", warn);
    const ask = (run: Run) => Promise.all([1, 2, 3, 4, 5].map((n) => run("SELECT $1::int AS n", [n])));
    const answers = await connections.transaction(ask, DEADLINE_MS);
    process.off("warning", warn);
    expect(answers.map((answer) => answer.rows)).toEqual([1, 2, 3, 4, 5].map((n) => [{ n }]));
    expect(warned).toEqual([]);
  });

  describe("a failed transaction is rolled back, and the connection is reused", () => {
    test("if the server refuses a statement", async () => {
      const error = await failure(
        connections.transaction(async (run) => {
          await insert(1)(run);
          await run("SELECT 1 / 0");
        }, DEADLINE_MS),
      );
      expect(error).toMatchObject({ code: "22012" });
      await connections.transaction(insert(2), DEADLINE_MS);
      expect([await rows(), await sessions()]).toEqual([[2], 1]);
    });

    test("if the caller throws", async () => {
      const mind = new Error("changed");
      const work = async (run: Run) => {
        await insert(1)(run);
        throw mind;
      };
      expect(await failure(connections.transaction(work, DEADLINE_MS))).toBe(mind);
      await connections.transaction(insert(2), DEADLINE_MS);
      expect([await rows(), await sessions()]).toEqual([[2], 1]);
    });

    test("if the commit is refused: the outcome is not ambiguous", async () => {
      await connections.transaction(insert(1), DEADLINE_MS);
      expect(await failure(connections.transaction(insert(1), DEADLINE_MS))).toMatchObject({ code: "23505" });
      expect(await rows()).toEqual([1]);
    });

    test("if the caller swallows an error: the transaction still fails", async () => {
      const work = async (run: Run) => {
        await insert(1)(run);
        await failure(run("SELECT 1 / 0"));
      };
      expect(String(await failure(connections.transaction(work, DEADLINE_MS)))).toMatch(/rolled back/);
      expect(await rows()).toEqual([]);
    });

    test("and a statement after the end is rejected", async () => {
      let late: Run | undefined;
      await connections.transaction(async (run) => {
        late = run;
      }, DEADLINE_MS);
      expect(String(await failure(late?.("INSERT INTO t VALUES (1)") ?? Promise.resolve()))).toMatch(/is over/);
      expect(await rows()).toEqual([]);
    });
  });

  describe("deadlines", () => {
    const timed = async (work: Promise<unknown>) => {
      const from = performance.now();
      await expectAway(work, ["timeout"]);
      expect(performance.now() - from).toBeLessThan(SHORT_MS + 300);
    };

    test("of a statement: the server cancels it too", async () => {
      await timed(connections.transaction((run) => run("SELECT pg_sleep(60)"), SHORT_MS));
      await until(
        "the statement is cancelled on the server",
        async () => (await sessions("AND state = 'active'")) === 0,
        2000,
      );
    });

    test("of the caller: its locks are released too", async () => {
      const hang = Promise.withResolvers<void>();
      const work = async (run: Run) => {
        await run("LOCK TABLE t");
        await hang.promise;
      };
      await timed(connections.transaction(work, SHORT_MS));
      await connections.transaction(insert(2), DEADLINE_MS);
      expect(await rows()).toEqual([2]);
    });

    test("of a place among the connections; the next caller takes it once one is free", async () => {
      const hold = Promise.withResolvers<void>();
      const held = [1, 2, 3, 4].map((n) =>
        connections.transaction(async (run) => {
          await insert(n)(run);
          await hold.promise;
        }, DEADLINE_MS),
      );
      await timed(connections.transaction(insert(5), SHORT_MS));
      const waiting = [6, 7, 8, 9, 10].map((n) => connections.transaction(insert(n), DEADLINE_MS));
      hold.resolve();
      await Promise.all([...held, ...waiting]);
      expect(await rows()).toEqual([1, 2, 3, 4, 6, 7, 8, 9, 10]);
      expect(await sessions()).toBe(4);
    });

    test("of a frozen server, with and without an open connection", async () => {
      await connections.transaction(insert(1), DEADLINE_MS);
      server.freeze();
      const fresh = connect(server.url());
      try {
        await Promise.all([connections, fresh].map((each) => timed(each.transaction(insert(2), SHORT_MS))));
      } finally {
        server.thaw();
        fresh.close();
      }
      await connections.transaction(insert(3), DEADLINE_MS);
      expect(await rows()).toEqual([1, 3]);
    });
  });

  describe("an unknown outcome is reported as ambiguous", () => {
    test("if the server does not answer a COMMIT", async () => {
      const work = async (run: Run) => {
        await insert(1)(run);
        server.freeze();
      };
      try {
        await expectAway(connections.transaction(work, SHORT_MS), ["timeout"], true);
      } finally {
        server.thaw();
      }
    });

    test("if the server is lost in a COMMIT that waits for a standby", async () => {
      await server.sql("ALTER SYSTEM SET synchronous_standby_names = 'nobody'");
      await server.sql("SELECT pg_reload_conf()");
      try {
        for (const end of ["pg_cancel_backend", "pg_terminate_backend"]) {
          const expected = expectAway(
            connections.transaction(insert(1), DEADLINE_MS),
            ["terminated", "unreachable"],
            true,
          );
          await until(
            "the transaction waits for a standby",
            async () => (await sessions("AND wait_event = 'SyncRep'")) === 1,
          );
          await server.sql(`SELECT ${end}(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'`);
          await expected;
          // It is there, and nowhere else.
          expect(await rows()).toEqual([1]);
          await server.sql("SET synchronous_commit = local; TRUNCATE t");
        }
      } finally {
        await server.sql("ALTER SYSTEM RESET synchronous_standby_names");
        await server.sql("SELECT pg_reload_conf()");
      }
    });
  });

  describe("a lost server", () => {
    test("ends running transactions and is reconnected", async () => {
      const work = async (run: Run) => {
        await insert(1)(run);
        await server.kill();
        await insert(2)(run);
      };
      await expectAway(connections.transaction(work, DEADLINE_MS), ["unreachable", "terminated"]);
      await expectAway(connections.transaction(insert(3), DEADLINE_MS), ["unreachable"]);
      await server.begin();
      await connections.transaction(insert(4), DEADLINE_MS);
      expect(await rows()).toEqual([4]);
    });

    test("causes no failure if no transaction is running", async () => {
      for (let n = 1; n <= 20; n++) {
        await connections.transaction(insert(n), DEADLINE_MS);
        await server.terminateSessions();
      }
      expect((await rows()).length).toBe(20);
    });

    test("is not replaced by a standby before its promotion", async () => {
      await connections.transaction(insert(1), DEADLINE_MS);
      await server.replaceByStandby("standby");
      await expectAway(connections.transaction(insert(2), DEADLINE_MS), ["read_only"]);
      await server.promote();
      await connections.transaction(insert(3), DEADLINE_MS);
      expect(await rows()).toEqual([1, 3]);
    });

    test("is also one that has become read-only", async () => {
      await connections.transaction(insert(1), DEADLINE_MS);
      await server.sql("ALTER SYSTEM SET default_transaction_read_only = on");
      await server.sql("SELECT pg_reload_conf()");
      try {
        await until(
          "the server is read-only",
          async () => (await server.sql("SHOW default_transaction_read_only")) === "on",
        );
        await expectAway(connections.transaction(insert(2), DEADLINE_MS), ["read_only"]);
      } finally {
        await server.sql("ALTER SYSTEM RESET default_transaction_read_only");
        await server.sql("SELECT pg_reload_conf()");
        await until(
          "the server is writable",
          async () => (await server.sql("SHOW default_transaction_read_only")) === "off",
        );
      }
    });
  });

  describe("listening", () => {
    const listen = () => {
      const seen = { hints: 0, changes: [] as boolean[] };
      const listening = connections.listen(
        "some channel",
        () => seen.hints++,
        (is) => seen.changes.push(is),
      );
      return { seen, listening };
    };
    const notify = () => server.sql('NOTIFY "some channel"');

    test("notifies at the start and at each notification, until it is stopped", async () => {
      const { seen, listening } = listen();
      await until("the listener is connected", () => seen.hints === 1);
      await notify();
      await until("the notification is received", () => seen.hints === 2);
      listening.stop();
      await until("the session is closed", async () => (await sessions()) === 0);
      await notify();
      expect(seen).toEqual({ hints: 2, changes: [true, false] });
    });

    test("reports its end and restarts", async () => {
      const { seen } = listen();
      await until("the listener is connected", () => seen.hints === 1);
      await server.terminateSessions();
      await until("the listener has reconnected", () => seen.hints === 2);
      await notify();
      await until("the notification is received", () => seen.hints === 3);
      expect(seen.changes).toEqual([true, false, true]);
    });

    test("detects a silent server", async () => {
      const { seen } = listen();
      await until("the listener is connected", () => seen.hints === 1);
      server.freeze();
      try {
        await until("the lost connection is reported", () => seen.changes.length === 2, 4 * HEARTBEAT_MS);
      } finally {
        server.thaw();
      }
      await until("the listener has reconnected", () => seen.hints === 2);
    });
  });
});
