/**
 * Benchmark of the shared directory: `room_create` on a standalone host, on the only host of a cluster, and on three hosts of a cluster
 * that all create rooms concurrently; with one client, and with eight. PostgreSQL flushes to disk, and a plain UPDATE … COMMIT on it is the
 * yardstick.
 */
import pg from "pg";
import type { TestDaemon } from "../../harness/daemon.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import type { Bench } from "../report.ts";

const USUAL_COUNT = 200;
const CLIENTS = 8;
const ON_DISK = { settings: { fsync: "on", synchronous_commit: "on" } };

export async function benchCluster({ report, count = USUAL_COUNT, start, watch }: Bench): Promise<void> {
  const standalone = await start({});
  await using one = await TestHosts.start(1, {}, ON_DISK);
  await using three = await TestHosts.start(3, {}, ON_DISK);
  await using watches = new AsyncDisposableStack();
  for (const host of [...one.hosts, ...three.hosts]) watches.use(await watch(host));
  const url = one.postgres.url("tcp");
  const roads: [string, readonly TestDaemon[]][] = [
    ["alone", [standalone]],
    ["of_one", one.hosts],
    ["of_three", three.hosts],
  ];
  for (const [, hosts] of roads) for (const host of hosts) await makeRooms([host], 1, 10);
  const commits = { one: await commitsOf(url, 1, count), many: await commitsOf(url, CLIENTS, count) };
  report.add("commit_alone", "ms", commits.one.samplesMs);
  report.add("commit_8_clients", "ms", commits.many.samplesMs);
  report.add("commits_per_second", "1/s", [commits.many.perSecond]);
  for (const [name, hosts] of roads) {
    const single = await makeRooms(hosts.slice(0, 1), 1, count);
    const seq = await seqOf(name, { one, three });
    const many = await makeRooms(hosts, CLIENTS, count);
    const rounds = (await seqOf(name, { one, three })) - seq;
    report.add(`${name}_create_alone`, "ms", single.samplesMs, "commit_alone");
    report.add(`${name}_create_8_clients`, "ms", many.samplesMs, "commit_8_clients");
    report.add(`${name}_creates_per_second`, "1/s", [many.perSecond], "commits_per_second");
    if (rounds > 0) report.add(`${name}_rounds_per_second`, "1/s", [(rounds / many.wallMs) * 1000]);
  }
}

interface Done {
  samplesMs: number[];
  wallMs: number;
  perSecond: number;
}

/** With `clients` clients of sequential calls, each at the next host. */
async function timed(
  clients: number,
  count: number,
  ask: (client: number, index: number) => Promise<void>,
): Promise<Done> {
  const samplesMs: number[] = [];
  const startedAt = performance.now();
  let next = 0;
  const each = async (client: number) => {
    while (next < count) {
      const index = next++;
      const askedAt = performance.now();
      await ask(client, index);
      samplesMs.push(performance.now() - askedAt);
    }
  };
  await Promise.all(Array.from({ length: clients }, (_, client) => each(client)));
  const wallMs = performance.now() - startedAt;
  return { samplesMs, wallMs, perSecond: (count / wallMs) * 1000 };
}

let made = 0;

function makeRooms(hosts: readonly TestDaemon[], clients: number, count: number): Promise<Done> {
  return timed(clients, count, async (client) => {
    const host = hosts[client % hosts.length] as TestDaemon;
    await host.ok("POST", "/v1/rooms", { room_id: `bench-${made++}`, host: host.env.ROOMD_HOST_ID });
  });
}

/** Changes and commits a row, each client with a separate connection. */
async function commitsOf(url: string, clients: number, count: number): Promise<Done> {
  const sessions = await Promise.all(
    Array.from({ length: clients }, async () => {
      const session = new pg.Client({ connectionString: url });
      await session.connect();
      return session;
    }),
  );
  await sessions[0]?.query("CREATE TABLE IF NOT EXISTS bench (id int PRIMARY KEY, n int)");
  await sessions[0]?.query(
    `INSERT INTO bench SELECT g, 0 FROM generate_series(0, ${clients}) g ON CONFLICT DO NOTHING`,
  );
  const done = await timed(clients, count, async (client) => {
    await sessions[client]?.query(`BEGIN; UPDATE bench SET n = n + 1 WHERE id = ${client}; COMMIT`);
  });
  await Promise.all(sessions.map((session) => session.end()));
  return done;
}

/** How many changes there were; of a host alone there are none. */
async function seqOf(name: string, services: { one: TestHosts; three: TestHosts }): Promise<number> {
  if (name === "alone") return 0;
  const { postgres } = name === "of_one" ? services.one : services.three;
  return Number(await postgres.sql("SELECT seq FROM roomd.cluster"));
}
