/** Number of rows that are read back to find the row to add to. */
import { expect, test } from "vitest";
import type { OrgId } from "../../../../../shared/ids.ts";
import { watchStatements } from "../../../../harness/event-loop/watched-statements.ts";
import { MeterFixture, placeOf } from "./meter-fixture.ts";

test("for any order of organizations, a checkpoint reads each row to update once, and never again", async () => {
  using read = watchStatements(/from "?usage"? /i);
  using host = new MeterFixture("2026-01-31T12:00:00Z");
  const [organizations, rooms] = [70, 3];
  await host.database.commit((queries) => {
    for (let at = 0; at < 1000; at++) host.meter.count(placeOf(`agent-${at}`), { messages: 1 });
    for (let at = 0; at < organizations * rooms; at++) {
      const place = {
        ...placeOf("", `rom_${String(at).padStart(4, "0")}`),
        org_id: `org_${at % organizations}` as OrgId,
      };
      host.meter.fills(queries, place, 1_000_000);
    }
  });
  for (let minute = 0; minute < 3; minute++) {
    host.pass(3600);
    read.runs = [];
    await host.meter.checkpoint();
    const rowsRead = read.runs.reduce((sum, { rows: each }) => sum + each, 0);
    // The first counts rows and makes its own; the second finds those.
    expect(rowsRead > 0).toBe(minute < 2);
    expect(rowsRead).toBeLessThanOrEqual(3 * organizations * rooms);
    expect(read.runs.filter(({ sql }) => sql.includes("count(")).length).toBeLessThanOrEqual(
      minute === 0 ? organizations : 0,
    );
  }
  expect(host.totals()).toMatchObject({ messages: 1000, drive_byte_hours: 3 * rooms * 1_000_000 });
});

test("rows of a failed transaction are not counted", async () => {
  using host = new MeterFixture("2026-01-31T12:00:00Z", undefined, 10);
  let isFull = true;
  host.database.beforeCommit(() => {
    if (isFull) throw new Error("not written");
  });
  const send = (at: number) => host.database.commit(() => host.meter.count(placeOf(`agent-${at}`), { messages: 1 }));
  for (let at = 0; at < 20; at++) await expect(send(at)).rejects.toThrow("not written");
  isFull = false;
  for (let at = 0; at < 10; at++) await send(100 + at);
  expect(Object.keys(host.groups("agent"))).toHaveLength(10);
  expect(Object.keys(host.groups("agent"))).not.toContain("");
});
