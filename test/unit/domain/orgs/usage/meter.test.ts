/** Metering of continuous use and of events across restarts of the daemon, reboots of the host, and clock changes. */
import { expect, test } from "vitest";
import { listAudit } from "../../../../../daemon/domain/audit/index.ts";
import { daysOf } from "../../../../../daemon/domain/orgs/usage/moment.ts";
import { FREE, MICRO } from "../../../../../daemon/domain/orgs/usage/prices.ts";
import { groupsOf, monthOf } from "../../../../../daemon/domain/orgs/usage/report.ts";
import { roomCosts } from "../../../../../daemon/domain/orgs/usage/room-cost.ts";
import { MAX_GROUPS } from "../../../../../shared/api/usage.ts";
import type { OrgId } from "../../../../../shared/ids.ts";
import { MeterFixture, ORG, placeOf } from "./meter-fixture.ts";

const HOUR = 3600;

test("time is split at the end of a day", () => {
  const end = Date.parse("2026-03-01T01:00:00Z");
  expect([...daysOf(end, 26 * HOUR * 1000)]).toEqual([
    { day: "2026-02-27", ms: 1 * HOUR * 1000 },
    { day: "2026-02-28", ms: 24 * HOUR * 1000 },
    { day: "2026-03-01", ms: 1 * HOUR * 1000 },
  ]);
  expect([...daysOf(end, 0)]).toEqual([]);
});

test("a month is a calendar month in UTC", () => {
  expect(monthOf("2028-02-29")).toEqual({
    start_at: "2028-02-01T00:00:00.000Z",
    end_at: "2028-03-01T00:00:00.000Z",
    from: "2028-02-01",
    to: "2028-02-29",
  });
  expect(monthOf("2026-12")).toMatchObject({ end_at: "2027-01-01T00:00:00.000Z", to: "2026-12-31" });
});

test("a sandbox's time counts while it is running, up to now", async () => {
  using host = new MeterFixture();
  await host.opens("sbx_1");
  host.pass(90);
  expect(host.totals()).toMatchObject({ sandbox_seconds: 90, vcpu_seconds: 180, memory_mib_seconds: 90 * 512 });
  await host.closes("sbx_1");
  host.pass(1000);
  await host.opens("sbx_1");
  host.pass(10.5);
  await host.closes("sbx_1");
  expect(host.totals()).toMatchObject({ sandbox_seconds: 100.5, vcpu_seconds: 201 });
});

test("events are counted once stored, for all organizations together", async () => {
  using host = new MeterFixture();
  const { meter, database } = host;
  await database.commit(() => meter.count(placeOf("a"), { messages: 2 }));
  const lost = database.commit(() => {
    meter.count(placeOf("a"), { messages: 5 });
    throw new Error("not kept");
  });
  const other = { ...placeOf("b"), org_id: "org_2" as OrgId };
  await database.commit(() => meter.count(other, { messages: 1, exec_count: 1, egress_bytes: 7 }));
  await expect(lost).rejects.toThrow("not kept");
  expect(meter.happened).toEqual({ messages: 3, exec_count: 1 });
});

test("events count for the day on which they occurred", async () => {
  using host = new MeterFixture("2026-01-31T22:00:00Z");
  await host.opens("sbx_1");
  host.pass(5 * HOUR);
  expect(host.totals({ from: "2026-01-01", to: "2026-01-31" }).sandbox_seconds).toBe(2 * HOUR);
  await host.closes("sbx_1");
  expect(host.groups("day")).toMatchObject({
    "2026-01-31": { sandbox_seconds: 2 * HOUR },
    "2026-02-01": { sandbox_seconds: 3 * HOUR },
  });
});

test("any clock change leaves the counts correct", async () => {
  using host = new MeterFixture();
  await host.opens("sbx_1");
  host.pass(100);
  host.step(-30 * 86_400);
  expect(host.totals().sandbox_seconds).toBe(100);
  host.pass(100);
  await host.meter.checkpoint();
  host.step(365 * 86_400);
  host.pass(100);
  await host.closes("sbx_1");
  expect(host.totals().sandbox_seconds).toBe(300);
});

test("a guest that ran without a daemon is counted once it is adopted", async () => {
  using host = new MeterFixture();
  await host.opens("sbx_1");
  host.pass(60);
  host.kill();
  host.pass(3000);
  host.start();
  expect(host.totals().sandbox_seconds).toBe(0);
  await host.opens("sbx_1");
  expect(host.totals().sandbox_seconds).toBe(3060);
  host.pass(40);
  await host.closes("sbx_1");
  expect(host.totals().sandbox_seconds).toBe(3100);
});

test("a guest that ended without a daemon is counted until it was last seen", async () => {
  using host = new MeterFixture();
  await host.opens("sbx_1");
  host.pass(60);
  await host.meter.checkpoint();
  host.pass(20);
  host.kill();
  host.reboot(86_400);
  host.start();
  await host.meter.checkpoint();
  await host.closes("sbx_1");
  expect(host.totals().sandbox_seconds).toBe(60);
});

test("a drive counts by its usage, also while daemon and host are down", async () => {
  using host = new MeterFixture();
  const drive = placeOf("");
  const fills = (bytes: number) => host.database.commit((queries) => host.meter.fills(queries, drive, bytes));
  await fills(1_000_000);
  host.pass(2 * HOUR);
  await fills(1_000_000);
  host.kill();
  host.reboot(3 * HOUR);
  host.start();
  await fills(500_000);
  expect(host.totals().drive_byte_hours).toBe(5_000_000);
  host.pass(HOUR);
  await fills(0);
  host.pass(HOUR);
  expect(host.totals()).toMatchObject({ drive_byte_hours: 5_500_000, sandbox_seconds: 0 });
  expect(host.groups("agent")).toMatchObject({ "": { drive_byte_hours: 5_500_000 } });
});

test("what a room and an organization cost is the same before and after their use is written", async () => {
  const prices = { ...FREE, sandbox_hour: 10, drive_gib_month: 730 };
  using host = new MeterFixture(undefined, prices);
  const { meter, database } = host;
  const inRoom = (room: string, agent = "") => placeOf(agent, room);
  const fills = (room: string, gib: number) =>
    database.commit((queries) => meter.fills(queries, inRoom(room), gib * 1024 ** 3));
  const costOf = roomCosts(database.queries, meter, prices, ORG);
  const costs = () =>
    ["rom_1", "rom_2", "rom_3"].map((room) => costOf({ ...inRoom(room), created_at: "2026-01-31T22:00:00Z" }).credits);
  await host.opens("sbx_1", inRoom("rom_1", "a"));
  await host.opens("sbx_2", inRoom("rom_2", "a"));
  for (const room of ["rom_1", "rom_3"]) await fills(room, 4);
  host.pass(HOUR);
  await fills("rom_2", 2);
  host.pass(HOUR / 2);
  expect(costs()).toEqual([15 + 6, 15 + 1, 6]);
  const rates = { micro_per_hour: (20 + 10) * MICRO, sandboxes: 2 };
  expect(meter.running(database.queries, ORG)).toEqual({ micro: (30 + 13) * MICRO, ...rates });
  await meter.checkpoint();
  expect(costs()).toEqual([15 + 6, 15 + 1, 6]);
  expect(meter.running(database.queries, ORG)).toEqual({ micro: 0, ...rates });
});

test("a clock decades off before a reboot bills a month at most, and the excess is recorded", async () => {
  using host = new MeterFixture("1970-01-01T00:00:10Z");
  const drive = placeOf("");
  await host.database.commit((queries) => host.meter.fills(queries, drive, 1_000_000));
  host.kill();
  const downSeconds = 56 * 365 * 86_400;
  host.reboot(downSeconds);
  host.start();
  await host.meter.checkpoint();
  expect(host.totals().drive_byte_hours).toBe(31 * 24 * 1_000_000);
  expect(listAudit(host.database.queries, { org_id: ORG, order: "asc", limit: 10 })).toMatchObject([
    {
      event: "usage.capped",
      room_uid: drive.room_uid,
      actor_type: "system",
      details: JSON.stringify({ counted_seconds: 31 * 86_400, not_counted_seconds: downSeconds - 31 * 86_400 }),
    },
  ]);
  // From then on the clock is right.
  host.pass(HOUR);
  await host.meter.checkpoint();
  expect(host.totals().drive_byte_hours).toBe((31 * 24 + 1) * 1_000_000);
});

test("counts of one commit are written together, and refused ones are not counted", async () => {
  using host = new MeterFixture();
  const sends = Array.from({ length: 20 }, (_, at) =>
    host.database.commit(() => {
      host.meter.count(placeOf("a", "rom_1", at < 10 ? "kid_1" : "kid_2"), { messages: 1, egress_bytes: at });
      if (at % 4 === 3) throw new Error("refused");
    }),
  );
  const outcomes = await Promise.allSettled(sends);
  expect(outcomes.filter(({ status }) => status === "fulfilled")).toHaveLength(15);
  expect(host.totals()).toMatchObject({ messages: 15, egress_bytes: 190 - (3 + 7 + 11 + 15 + 19) });
  expect(host.groups("key")).toMatchObject({ kid_1: { messages: 8 }, kid_2: { messages: 7 } });
  expect(host.meter.read("org_2" as typeof ORG, { from: "0000", to: "9999" }, "day").size).toBe(0);
});

test("agents and rooms without limit take a bounded number of rows a day, and every total stays correct", async () => {
  const most = 10;
  using host = new MeterFixture("2026-01-31T12:00:00Z", undefined, most);
  const send = (at: number, key: string) =>
    host.database.commit(() => host.meter.count(placeOf(`agent-${at}`, `rom_${at % 7}`, key), { messages: 1 }));
  for (let at = 0; at < 40; at++) await send(at, at % 4 ? "kid_1" : "kid_2");
  host.kill();
  host.start();
  for (let at = 40; at < 50; at++) await send(at, "kid_1");
  // Existing groups stay distinct.
  await send(0, "kid_2");
  expect(host.totals().messages).toBe(51);
  expect(host.groups("key")).toMatchObject({ kid_1: { messages: 40 }, kid_2: { messages: 11 } });
  expect(host.groups("agent")).toMatchObject({ "agent-0": { messages: 2 }, "": { messages: 40 } });
  expect(Object.keys(host.groups("agent"))).toHaveLength(most + 1);
  for (let at = 0; at < 30; at++) await send(at, `kid_${at + 3}`);
  expect(host.totals().messages).toBe(81);
  expect(Object.keys(host.groups("key")).length).toBeLessThanOrEqual(2 * most + 1);
  // A new day has its own groups.
  host.pass(13 * HOUR);
  await send(100, "kid_1");
  expect(host.groups("agent")).toMatchObject({ "agent-100": { messages: 1 } });
});

test("groups above the limit are reported together, and all add up to the totals", () => {
  const amounts = new Map(
    Array.from({ length: MAX_GROUPS + 5 }, (_, at) => [
      `agent-${at}`,
      {
        ...{ sandbox_ms: at, vcpu_ms: 0, memory_mib_ms: 0, exec_count: 1, messages: 0 },
        egress_bytes: 0,
        drive_byte_hours: 0,
        build_ms: 0,
      },
    ]),
  );
  const { groups, others } = groupsOf("agent", amounts);
  expect(groups).toHaveLength(MAX_GROUPS);
  expect(groups[0]).toMatchObject({
    id: `agent-${MAX_GROUPS + 4}`,
    totals: { sandbox_seconds: (MAX_GROUPS + 4) / 1000 },
  });
  expect(others).toMatchObject({ group_count: 5, totals: { sandbox_seconds: 0.01, exec_count: 5 } });
});
