/** How a daemon starts that finds another's lease, and which of two with one identity is the host: with a PostgreSQL for the latter. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { readAddresses } from "../../../daemon/cluster/address.ts";
import { Connections, type Run } from "../../../daemon/cluster/connections.ts";
import { Leases, type Load } from "../../../daemon/cluster/leases.ts";
import { holds, type MembershipLock } from "../../../daemon/cluster/membership-lock.ts";
import { makeSchema } from "../../../daemon/cluster/schema.ts";
import { DirectoryUnavailable } from "../../../daemon/cluster/unavailable.ts";
import { ConfigError } from "../../../daemon/core/config/config.ts";
import { makeLog } from "../../../daemon/core/log.ts";
import { Postgres } from "../../harness/hosts/postgres.ts";

const newDaemon = (run: string): MembershipLock => ({
  run,
  place: "p",
  acknowledged: null,
  attempted: null,
  isOut: false,
});

/** Leases with a database that returns these answers, one per beat, and is unavailable after the last. */
function answering(...answers: { is_member: boolean; others_until: string | null }[]) {
  const transaction = async (work: (run: Run) => Promise<unknown>) => {
    const answer = answers.shift();
    if (!answer) throw new DirectoryUnavailable("unreachable", "as a test wants it");
    return await work(async () => ({
      command: "SELECT",
      rows: [{ ...answer, beat: answer.is_member ? 1 : null, load: {}, database_ms: Date.now() }],
    }));
  };
  return new Leases({
    connections: { transaction } as unknown as Connections,
    member: { cluster_id: "c", host_id: "one", incarnation: "i" },
    holder: newDaemon("r"),
    version: "1",
    log: makeLog("error", () => {}),
  });
}

const OTHERS = { is_member: false, others_until: "12:00" };
const load = () => ({}) as Load;

test("a daemon starts once the previous daemon's lease expires or the database is down", async () => {
  for (const leases of [answering(OTHERS, OTHERS, { is_member: true, others_until: null }), answering(OTHERS)]) {
    await leases.start(load);
    await leases.stop();
  }
});

test("a daemon whose lease another daemon renews is rejected", async () => {
  await expect(answering(OTHERS, { ...OTHERS, others_until: "12:03" }).start(load)).rejects.toThrow(ConfigError);
});

describe("daemons with one identity", () => {
  const member = { cluster_id: "c", host_id: "one", incarnation: "i" };
  let server: Postgres;
  let connections: Connections;
  beforeAll(async () => {
    server = await Postgres.start();
    connections = new Connections({ addresses: readAddresses(server.url()) });
  }, 60_000);
  afterAll(async () => {
    connections?.close();
    await server?.[Symbol.asyncDispose]();
  });
  beforeEach(async () => {
    await server.sql("DROP SCHEMA IF EXISTS roomd CASCADE");
    await connections.transaction(makeSchema, 5000);
    await server.sql(
      "INSERT INTO roomd.leases (host_id, incarnation, version, lease_until, load) VALUES ('one', 'i', '', now(), '{}')",
    );
  });

  /** One beat of a daemon as it is then; whether it is the member after it. */
  async function beats(holder: MembershipLock, by: Pick<Connections, "transaction"> = connections): Promise<boolean> {
    const leases = new Leases({
      ...{ connections: by as Connections, member, holder, version: "1", log: makeLog("error", () => {}) },
    });
    await leases.start(() => ({ memory_mib: { promised: 0, total: 1 } }) as Load);
    // Without its last word, which would give the lease back.
    leases.leave();
    return leases.isMember;
  }
  const isHost = (holder: MembershipLock) => connections.transaction((run) => holds(run, member, holder), 5000);

  test("of a daemon and its live copy the first to beat is the member; the other is out until a restart", async () => {
    const one = newDaemon("r");
    expect(await beats(one)).toBe(true);
    const copy = structuredClone(one);
    expect([await beats(copy), await beats(copy)]).toEqual([true, true]);
    expect([await beats(one), await isHost(one), await isHost(copy)]).toEqual([false, false, true]);
    await server.sql("UPDATE roomd.leases SET lease_until = now() - interval '1 hour'");
    expect([await beats(one), await beats(copy)]).toEqual([false, true]);
    expect([await beats(newDaemon("s")), await beats(copy)]).toEqual([true, false]);
  });

  test("a daemon restored with its memory is no member at its next beat", async () => {
    const one = newDaemon("r");
    await beats(one);
    const before = structuredClone(one);
    for (let n = 0; n < 3; n++) expect(await beats(one)).toBe(true);
    expect([await beats(before), await isHost(before)]).toEqual([false, false]);
  });

  test("a beat whose COMMIT got no reply counts as its own, whether it was stored or not", async () => {
    const one = newDaemon("r");
    await beats(one);
    const ambiguous = { ambiguous: true };
    const done = async (...args: Parameters<Connections["transaction"]>) => {
      await connections.transaction(...args);
      throw new DirectoryUnavailable("timeout", "as a test wants it", ambiguous);
    };
    const undone = () => Promise.reject(new DirectoryUnavailable("timeout", "as a test wants it", ambiguous));
    for (const transaction of [done, undone, done, done, undone, undone]) {
      await beats(one, { transaction } as never);
      expect(one.isOut).toBe(false);
    }
    expect(await beats(one)).toBe(true);
    await beats(one, { transaction: done } as never);
    expect([await beats(one), await beats(one)]).toEqual([true, true]);
  });

  test("an older own beat in a restored directory is not taken for another daemon's", async () => {
    const one = newDaemon("r");
    await beats(one);
    await server.sql("CREATE TABLE roomd.before AS TABLE roomd.leases");
    for (let n = 0; n < 2; n++) await beats(one);
    await server.sql("DELETE FROM roomd.leases; INSERT INTO roomd.leases SELECT * FROM roomd.before");
    expect([await beats(one), await beats(one)]).toEqual([true, true]);
  });

  test("a daemon that is out stays out if the directory is restored to before the other daemon's beats", async () => {
    const one = newDaemon("r");
    await beats(one);
    const copy = structuredClone(one);
    await server.sql("CREATE TABLE roomd.before AS TABLE roomd.leases");
    await beats(one);
    expect([await beats(one), await beats(copy)]).toEqual([true, false]);
    await server.sql("DELETE FROM roomd.leases; INSERT INTO roomd.leases SELECT * FROM roomd.before");
    expect([await beats(copy), await isHost(copy)]).toEqual([false, false]);
    expect([await beats(one), await isHost(one), await beats(copy)]).toEqual([true, true, false]);
  });

  test("a directory restored to before lost changes has no other daemon's number", async () => {
    const one = newDaemon("r");
    await beats(one);
    await server.sql("CREATE TABLE roomd.fork AS TABLE roomd.leases");
    await beats(one);
    await server.sql("CREATE TABLE roomd.lost AS TABLE roomd.leases");
    const become = (table: string) =>
      server.sql(`DELETE FROM roomd.leases; INSERT INTO roomd.leases SELECT * FROM roomd.${table}`);
    await become("fork");
    const next = newDaemon("s");
    expect(await beats(next)).toBe(true);
    await become("lost");
    expect([await beats(next), await beats(next), await isHost(next)]).toEqual([true, true, true]);
  });

  test("a directory of an older version gets its missing columns", async () => {
    await server.sql("ALTER TABLE roomd.leases DROP COLUMN beat, DROP COLUMN beat_id");
    expect(await beats(newDaemon("r"))).toBe(true);
    expect(Number(await server.sql("SELECT beat FROM roomd.leases"))).toBeGreaterThan(0);
  });
});
