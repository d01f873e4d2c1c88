/**
 * A host that is killed around the directory's commit: uncommitted changes are nowhere, committed changes are visible to all hosts, and the
 * host that made them records them when it restarts.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { TestDaemon } from "../../harness/daemon.ts";
import { shortOrLong, until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";
import { sampled } from "../../harness/sampled.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2);
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

type RecordOf = { event: string; details: { change: number; tables: Record<string, string[]> } };

async function recordsOf(event: string): Promise<RecordOf[]> {
  return (await one.ok("GET", `/v1/orgs/${one.orgId}/audit?event=${event}&limit=100`)).items;
}

const keysOf = async (host: TestDaemon): Promise<{ name: string; key_id: string; revoked_at: string | null }[]> =>
  (await host.ok("GET", `/v1/orgs/${host.orgId}/keys`)).items;

/**
 * Kills the host at a fault point, which may include a number of passes, during its start or a call; then restarts it without the fault.
 */
async function diesAt(point: string, ask: (index: number) => Promise<unknown>): Promise<void> {
  await one.end("SIGTERM");
  one.env.ROOMD_FAULT_POINT = point;
  await one.serve().catch(() => {});
  delete one.env.ROOMD_FAULT_POINT;
  for (let index = 0; one.runs && index < MAX_ASKED; index++) await ask(index).catch(() => {});
  await until("the daemon has exited", () => !one.runs);
  await one.serve();
}

const MAX_ASKED = 60;

/** Keys of this name are equal on both hosts, each with an audit record of its creation or its recovery. */
async function expectRecorded(name: string): Promise<{ made: number; recovered: number }> {
  const named = async (host: TestDaemon) =>
    (await keysOf(host)).filter((each) => each.name.startsWith(name)).map(({ key_id }) => key_id);
  const here = await named(one);
  await until("both hosts list the same rooms", async () => JSON.stringify(await named(two)) === JSON.stringify(here));
  const recovered = (await recordsOf("cluster.change_recovered")).flatMap(
    ({ details }) => details.tables.api_keys ?? [],
  );
  const created = JSON.stringify(await recordsOf("key.created"));
  expect(here.filter((key_id) => !created.includes(key_id) && !recovered.includes(key_id))).toEqual([]);
  return { made: here.length, recovered: here.filter((key_id) => recovered.includes(key_id)).length };
}

test.each(
  sampled("points at which a host dies", [
    "round.written",
    "round.true",
    "commit.before",
    "commit.written",
    "commit.after",
  ]),
)(
  "a host that dies at %s has recorded every committed change, or does so at its next start",
  async (point) => {
    const seen = [];
    for (const nth of point.startsWith("round")
      ? [1, 2, 3]
      : shortOrLong("passings of a point", [14, 16], [9, 14, 15, 16, 17, 18])) {
      const name = `${point} ${nth} `;
      await diesAt(`${point}=kill@${nth}`, (index) =>
        one.api("POST", `/v1/orgs/${one.orgId}/keys`, { name: `${name}${index}`, scopes: ["rooms:read"] }),
      );
      seen.push(await expectRecorded(name));
    }
    console.log(point, JSON.stringify(seen));
    if (point === "round.written") expect(seen.some(({ recovered }) => recovered > 0)).toBe(false);
    if (point === "round.true") expect(seen.some(({ recovered }) => recovered > 0)).toBe(true);
    const { body } = await one.api("GET", `/v1/orgs/${one.orgId}/audit/verify`);
    expect(JSON.stringify(body)).not.toContain('"ok":false');
  },
  90_000,
);

test("rooms whose host dies right after their placement do not exist, and their names are free", async () => {
  const made = new Set<string>();
  await diesAt("round.true=kill@4", async (index) => {
    const { status } = await one.api("POST", "/v1/rooms", { room_id: `unborn-${index}`, host: "host-1" });
    if (status === 201) made.add(`unborn-${index}`);
  });
  const unborn = `unborn-${made.size}`;
  await until("the name is free", async () => {
    return (await two.api("POST", "/v1/rooms", { room_id: unborn, host: "host-2" })).status === 201;
  });
  await until("one room has the name", async () => (await one.ok("GET", `/v1/rooms/${unborn}`)).host === "host-2");
  for (const name of made) expect((await one.ok("GET", `/v1/rooms/${name}`)).host).toBe("host-1");
  const recovered = await recordsOf("cluster.change_recovered");
  expect(recovered.flatMap(({ details }) => details.tables.placements ?? [])).not.toEqual([]);
}, 60_000);
