/** An organization's cap of rooms on two hosts while one of its rooms moves between them. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { NO_GUESTS, type TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

const MOST = "3";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  const caps = ["FREE", "STARTER"].flatMap((plan) => [
    [`ROOMD_PLANS_${plan}_ROOMS_SOFT_CAP`, MOST],
    [`ROOMD_PLANS_${plan}_ROOMS_HARD_CAP`, MOST],
  ]);
  service = await TestHosts.start(2, { env: { ...NO_GUESTS, ...Object.fromEntries(caps) } });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
  for (const room_id of ["stays", "moves"]) await one.ok("POST", "/v1/rooms", { room_id, host: "host-1" });
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
});

/** One more room fits, wherever it is made, and no second. */
async function oneMoreFits(name: string): Promise<void> {
  const make = async (host: string, room_id: string) => (await one.api("POST", "/v1/rooms", { room_id, host })).status;
  expect(await make("host-1", name), `${name}: the third room`).toBe(201);
  const beyond = [await make("host-1", `${name}-beyond-1`), await make("host-2", `${name}-beyond-2`)];
  expect(beyond, `${name}: a fourth room`).toEqual([429, 429]);
  await one.ok("DELETE", `/v1/rooms/${name}`);
  await until("both hosts count two rooms", async () => {
    const usages = await Promise.all([one, two].map((host) => host.ok("GET", "/v1/orgs/self/usage")));
    return usages.every(({ rooms }) => rooms.active === 2);
  });
}

test("a room that was just moved counts once", async () => {
  await oneMoreFits("before");
  for (const [turn, host] of ["host-2", "host-1", "host-2", "host-1"].entries()) {
    await one.ok("POST", "/v1/rooms/moves/move", { host });
    await oneMoreFits(`turn-${turn}`);
  }
}, 60_000);

test("a room with rows on both hosts counts once", async () => {
  one.env.ROOMD_FAULT_POINT = "move.claimed=stall";
  await one.restart();
  delete one.env.ROOMD_FAULT_POINT;
  await service.knowEachOther();
  const moving = one.ok("POST", "/v1/rooms/moves/move", { host: "host-2" });
  const query = `SELECT "row" ->> 'moved_use' FROM roomd.rows WHERE tbl = 'placements' AND "row" ->> 'room_id' = 'moves'
    AND "row" ->> 'host_id' = 'host-2'`;
  // The room is active on the next host, which has recorded that.
  await until("the next host owns the room", async () => (await two.api("GET", "/v1/rooms/moves")).status === 200);
  await until(
    "the rows of the room are in the directory",
    async () =>
      (await service.postgres.sql(`SELECT count(*) FROM (${query}) AS said`)) === "1" &&
      (await service.postgres.sql(query)) === "",
  );
  await oneMoreFits("stalled");
  process.kill(one.pid, "SIGUSR2");
  expect((await moving).to).toBe("host-2");
  await oneMoreFits("after");
}, 60_000);
