/** A PostgreSQL that was set back to before an organization was made: its room continues, and no call of another one fails. Two daemons. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Json, NO_GUESTS, type TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2, { env: NO_GUESTS });
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
}, 60_000);

test("an organization with a room is registered again by its host, and calls of others continue", async () => {
  await one.ok("POST", "/v1/rooms", { room_id: "innocent", host: "host-2" });
  await two.ok("PUT", "/v1/rooms/innocent/agents/b/subscriptions", { topics: ["t"] });
  await service.postgres.copy("before");
  const operator = { authorization: `Bearer ${one.operatorKey}` };
  const made = async () => await one.api("POST", "/v1/orgs", { name: "late" }, operator);
  let org: Json = {};
  await until("the database is followed again", async () => {
    const { status, body } = await made();
    org = body;
    return status === 201;
  });
  const theirs = { authorization: `Bearer ${org.api_key}` };
  await until("its room is on host-2", async () => {
    const { status } = await two.api("POST", "/v1/rooms", { room_id: "theirs", host: "host-2" }, theirs);
    return status === 201 || status === 409;
  });

  await service.postgres.replace("before");
  const statuses: number[] = [];
  const inDirectory = async () =>
    (await service.postgres.sql(`SELECT count(*) FROM roomd.rows WHERE tbl = 'orgs' AND "row" ->> 'name' = 'late'`)) ===
    "1";
  await until("the organization is in the database again", async () => {
    for (let n = 0; n < 5; n++) {
      const message = { source: "b", destination: "b", payload: n, ttl_ms: 1_000 };
      statuses.push((await two.api("POST", "/v1/rooms/innocent/messages", message)).status);
    }
    return await inDirectory();
  });
  expect(new Set(statuses)).toEqual(new Set([202]));
  for (const [host, id] of [
    [one, "host-1"],
    [two, "host-2"],
  ] as const) {
    await until(`rooms are made on ${id}`, async () =>
      [201, 409].includes((await host.api("POST", "/v1/rooms", { room_id: `new-${id}`, host: id })).status),
    );
    const { checks } = (await host.api("GET", "/health")).body;
    expect(checks.find(({ id: check }: Json) => check === "directory_rows")).toMatchObject({ status: "ok" });
  }
  // Its keys were lost with it: the operator makes a new one, at any host.
  const created = await one.cli(["key", "create", "--name", "again", "--org", org.org_id, "--json"]);
  const again = { authorization: `Bearer ${JSON.parse(created.stdout).key}` };
  await until("the room is found by way of the other host", async () => {
    const { status, body } = await one.api("GET", "/v1/rooms/theirs", undefined, again);
    return status === 200 && body.host === "host-2";
  });
  const path = "/v1/orgs/self/audit?event=cluster.ends_put_again";
  const { items } = (await two.api("GET", path, undefined, again)).body;
  expect(items).toMatchObject([{ details: { tables: { orgs: [org.org_id] } } }]);
  const failed = service.hosts.flatMap((host) => host.logged({ level: "error" }));
  expect(failed.filter(({ error }) => error.includes("FOREIGN KEY"))).toEqual([]);
}, 90_000);
