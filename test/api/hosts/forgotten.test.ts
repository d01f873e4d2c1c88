/**
 * A PostgreSQL that lost the record of a room's move: whatever it contains, exactly one host serves the room, the one that has its data.
 */
import { afterAll, beforeAll, expect, test } from "vitest";
import { SETTLE_FAILED } from "../../../daemon/domain/rooms/move/send.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";
import { TestHosts } from "../../harness/hosts/hosts.ts";

let service: TestHosts;
let one: TestDaemon;
let two: TestDaemon;

beforeAll(async () => {
  service = await TestHosts.start(2);
  [one, two] = service.hosts as [TestDaemon, TestDaemon];
  await service.knowEachOther();
}, 60_000);

afterAll(async () => {
  await service?.[Symbol.asyncDispose]();
}, 60_000);

/** Creates a room on the first host with a message, which the other host can locate, and copies PostgreSQL as a state to return to. */
async function begun(room_id: string): Promise<void> {
  await one.ok("POST", "/v1/rooms", { room_id, host: "host-1" });
  await one.ok("PUT", `/v1/rooms/${room_id}/agents/b/subscriptions`, { topics: ["t"] });
  await sendMessage(one, room_id, 1);
  await service.postgres.copy(room_id);
  await until("the directory is followed again", async () =>
    [201, 409].includes((await two.api("POST", "/v1/rooms", { room_id: "probe", host: "host-2" })).status),
  );
}

const sendMessage = (host: TestDaemon, room_id: string, n: number) =>
  host.ok("POST", `/v1/rooms/${room_id}/messages`, { source: "b", destination: "b", payload: n });

async function heard(host: TestDaemon, room_id: string): Promise<unknown[]> {
  const { items } = await host.ok("GET", `/v1/rooms/${room_id}/messages?agent_id=b&after=0`);
  return items.map(({ payload }: { payload: unknown }) => payload);
}

/** Hosts that serve a room, polled until both answer 200. */
async function servedBy(room_id: string): Promise<string[]> {
  const all = new Set<string>();
  await until("both hosts route to the owner", async () => {
    const answers = await Promise.all([one, two].map((host) => host.api("GET", `/v1/rooms/${room_id}`)));
    const by = answers.filter(({ status }) => status === 200).map(({ headers }) => headers.get("x-roomd-host") ?? "");
    for (const host of by) all.add(host);
    return by.length === 2;
  });
  return [...all];
}

const placed = (room_id: string) =>
  service.postgres.sql(
    `SELECT "row" ->> 'host_id', "row" ->> 'epoch' FROM roomd.rows WHERE tbl = 'placements' AND "row" ->> 'room_id' = '${room_id}'`,
  );

test("after the move: the new host registers the room again, also right after a restart", async () => {
  await begun("done");
  await one.ok("POST", "/v1/rooms/done/move", { host: "host-2" });
  await sendMessage(two, "done", 2);
  // The former host would report that the room has left it.
  await one.end("SIGKILL");
  await service.postgres.replace("done");
  await two.restart();
  await until("the placement is written again", async () => (await placed("done")) === "host-2|2");
  expect((await two.ok("GET", "/v1/rooms/done")).host).toBe("host-2");
  await one.serve();
  expect(await servedBy("done")).toEqual(["host-2"]);
  expect(await heard(one, "done")).toEqual([1, 2]);
  await one.ok("POST", "/v1/rooms/done/move", { host: "host-1" });
  expect(await placed("done")).toBe("host-1|3");
  expect(await heard(two, "done")).toEqual([1, 2]);
}, 90_000);

test("before the former host learned of it: that host stops serving the room, and keeps it until the other confirms it", async () => {
  await begun("claimed");
  one.env.ROOMD_FAULT_POINT = "move.claimed=kill";
  await one.restart();
  delete one.env.ROOMD_FAULT_POINT;
  await service.knowEachOther();
  await one.api("POST", "/v1/rooms/claimed/move", { host: "host-2" }).catch(() => null);
  await until("the daemon has exited", () => !one.runs);
  await until("the other host owns the room", async () => (await two.api("GET", "/v1/rooms/claimed")).status === 200);
  await sendMessage(two, "claimed", 2);
  process.kill(two.pid, "SIGSTOP");
  try {
    await service.postgres.replace("claimed");
    await one.serve();
    // Long enough for an unanswered query to the other host.
    await until(
      "the query of the other host has failed",
      () => one.logged({ message: SETTLE_FAILED }).length > 0,
      45_000,
    );
    const { status, body } = await one.api("GET", "/v1/rooms/claimed/messages?agent_id=b&after=0");
    expect([status, body.code]).toEqual([503, "room_moving"]);
  } finally {
    process.kill(two.pid, "SIGCONT");
  }
  await until("the directory names the other host", async () => (await placed("claimed")) === "host-2|2");
  expect(await servedBy("claimed")).toEqual(["host-2"]);
  expect(await heard(one, "claimed")).toEqual([1, 2]);
}, 120_000);
