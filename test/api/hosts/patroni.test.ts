/**
 * The third set-up of docs/cluster.md: three hosts on a PostgreSQL that survives the loss of a server, by Patroni with synchronous
 * replication demanded. While its primary is killed, and while it hands over, no room that was acknowledged is lost, and no name is two rooms'.
 */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { TestDaemon } from "../../harness/daemon.ts";
import { LONG, until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { PatroniService, whyNoPatroni } from "../../harness/hosts/patroni.ts";

const reason = whyNoPatroni() ?? (LONG ? null : "it takes minutes: ROOMD_TEST_LONG=1 runs it");
if (reason !== null) console.log(`hosts on a PostgreSQL by Patroni: left out, because ${reason}`);

/** Duration of a failover: the primary's TTL, the election, and a margin for a busy machine. */
const BACK_MS = 90_000;
/** Number of rooms created before and after the event. */
const STEADY_ROOMS = 30;

describe.skipIf(reason !== null)("hosts on a PostgreSQL by Patroni", () => {
  let service: TestHosts<PatroniService>;
  let postgres: PatroniService;

  beforeAll(async () => {
    postgres = await PatroniService.start(3);
    service = await TestHosts.on(postgres, 3);
    await service.knowEachOther();
  }, 240_000);
  afterAll(async () => {
    await (service ?? postgres)?.[Symbol.asyncDispose]();
  }, 60_000);

  test("its primary is killed: no room is lost or created twice", async () => {
    const former = await postgres.primary();
    await during("killed", async () => {
      await postgres.kill(former);
      await postgres.primary(former);
    });
  }, 300_000);

  test("switchovers to others and back, with the former primary as a standby: no room is lost or created twice", async () => {
    const killed = postgres.nodes.find(({ patroni }) => patroni === null)?.name ?? "";
    await postgres.begin(killed);
    await postgres.untilWhole();
    expect(await postgres.primary()).not.toBe(killed);
    await during("handed over", () => postgres.switchOver().then(() => {}));
    await postgres.untilWhole();
    await during("handed over again", () => postgres.switchOver().then(() => {}));
    await postgres.untilWhole();
  }, 600_000);

  test("its primary is frozen, then thawed still believing to be primary: no room is lost or created twice", async () => {
    const former = await postgres.primary();
    await during("frozen", async () => {
      postgres.freeze(former);
      await postgres.primary(former);
    });
    await during("thawed", async () => postgres.thaw(former));
    await postgres.untilWhole();
    expect(await postgres.primary()).not.toBe(former);
  }, 600_000);

  /** Two hosts concurrently create rooms of the same names during an event. */
  async function during(label: string, happens: () => Promise<void>): Promise<void> {
    const [one, two, three] = service.hosts as [TestDaemon, TestDaemon, TestDaemon];
    const making = new Making(label.replaceAll(" ", "-"), [one, two]);
    await until("rooms are created", () => making.made.size >= STEADY_ROOMS, BACK_MS);
    const [before, since] = [making.made.size, performance.now()];
    await happens();
    const happenedMs = performance.now() - since;
    await until("rooms are created again", () => making.lastAt > since + 1 && making.made.size > before + 5, BACK_MS);
    await until("more rooms are created", () => making.made.size >= before + STEADY_ROOMS, BACK_MS);
    await making.end();
    const { longestMs, answers } = making;
    const ms = [happenedMs, longestMs].map(Math.round).join(" ms, no room for ");
    console.log(`${label}: done after ${ms} ms; ${making.made.size} rooms; ${JSON.stringify(answers)}`);
    expect(making.twice).toEqual([]);
    for (const host of [one, two, three]) {
      const there = await roomsAt(host);
      expect([...making.made].filter(([name, uid]) => there.get(name) !== uid)).toEqual([]);
    }
    const names = await postgres.sql(
      `SELECT "row" ->> 'room_id' AS name FROM roomd.rows WHERE tbl = 'placements' AND "row" IS NOT NULL GROUP BY 1 HAVING count(*) > 1`,
    );
    expect(names).toEqual([]);
    for (const name of making.made.keys()) await one.ok("DELETE", `/v1/rooms/${name}`);
  }
});

/** Two clients that make rooms, each at its own host, and want the same names. */
class Making {
  /** Acknowledged rooms by name. */
  readonly made = new Map<string, string>();
  readonly twice: string[] = [];
  readonly answers: Record<string, number> = {};
  lastAt = performance.now();
  longestMs = 0;
  #isOver = false;
  readonly #all: Promise<unknown>;

  constructor(name: string, hosts: readonly TestDaemon[]) {
    this.#all = Promise.all(hosts.map((host) => this.#make(name, host)));
  }

  async end(): Promise<void> {
    this.#isOver = true;
    await this.#all;
  }

  async #make(prefix: string, host: TestDaemon): Promise<void> {
    for (let n = 1; !this.#isOver; n++) {
      const room_id = `${prefix}-${n}`;
      const isThere = async () => {
        const { status, body } = await host.api("POST", "/v1/rooms", { room_id });
        const outcome = status === 201 ? "201" : String(body.code);
        this.answers[outcome] = (this.answers[outcome] ?? 0) + 1;
        if (status === 201) this.#note(room_id, body.room_uid);
        else if (!["room_id_in_use", "cluster_unavailable"].includes(outcome)) throw new Error(JSON.stringify(body));
        return outcome !== "cluster_unavailable";
      };
      await until(`room ${room_id} is found`, isThere, BACK_MS);
    }
  }

  #note(name: string, uid: string): void {
    if (this.made.has(name)) this.twice.push(name);
    this.made.set(name, uid);
    this.longestMs = Math.max(this.longestMs, performance.now() - this.lastAt);
    this.lastAt = performance.now();
  }
}

/** All rooms in a host's list, by name. */
async function roomsAt(host: TestDaemon): Promise<Map<string, string>> {
  const found = new Map<string, string>();
  for (let cursor = ""; ; ) {
    const { items, next_cursor } = await host.ok("GET", `/v1/rooms?limit=100${cursor && `&cursor=${cursor}`}`);
    for (const { room_id, room_uid } of items) found.set(room_id, room_uid);
    if (!next_cursor) return found;
    cursor = next_cursor;
  }
}
