/** How much of what is written is read again, to know where something is added. */
import { Database } from "bun:sqlite";
import { expect, test, vi } from "vitest";
import type { OrgId } from "../../../../../shared/ids.ts";
import { MeterFixture, placeOf } from "./meter-fixture.ts";

test("however many organizations take turns, a checkpoint reads no more than what it adds to", async () => {
  const read = { rows: 0, counts: 0 };
  using _ = watchUsage(read);
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
    Object.assign(read, { rows: 0, counts: 0 });
    await host.meter.checkpoint();
    expect(read.rows).toBeGreaterThan(0);
    expect(read.rows).toBeLessThanOrEqual(3 * organizations * rooms);
    expect(read.counts).toBeLessThanOrEqual(minute === 0 ? organizations : 0);
  }
  expect(host.totals()).toMatchObject({ messages: 1000, drive_byte_hours: 3 * rooms * 1_000_000 });
});

test("rows of a transaction that was not kept are not counted", async () => {
  using host = new MeterFixture("2026-01-31T12:00:00Z", undefined, 10);
  let isFull = true;
  host.database.gather({
    mark: () => 0,
    backTo: () => {},
    write: () => {
      if (isFull) throw new Error("not written");
    },
  });
  const send = (at: number) => host.database.commit(() => host.meter.count(placeOf(`agent-${at}`), { messages: 1 }));
  for (let at = 0; at < 20; at++) await expect(send(at)).rejects.toThrow("not written");
  isFull = false;
  for (let at = 0; at < 10; at++) await send(100 + at);
  expect(Object.keys(host.groups("agent"))).toHaveLength(10);
  expect(Object.keys(host.groups("agent"))).not.toContain("");
});

/** Adds up what statements on the table of usage return, and how often its rows are counted. */
function watchUsage(read: { rows: number; counts: number }): Disposable {
  const prototype = Database.prototype as unknown as Record<string, (sql: string) => Record<string, unknown>>;
  const seen = new WeakSet<object>();
  const spies = (["query", "prepare"] as const).map((name) => {
    const original = prototype[name] as (this: unknown, sql: string) => Record<string, unknown>;
    return vi.spyOn(prototype, name).mockImplementation(function (this: unknown, sql: string) {
      const statement = original.call(this, sql);
      if (seen.has(statement) || !/from "?usage"? /i.test(sql)) return statement;
      seen.add(statement);
      for (const method of ["all", "values"]) {
        const run = statement[method] as (...values: unknown[]) => unknown[];
        statement[method] = (...values: unknown[]) => {
          const rows = run.apply(statement, values);
          read.rows += rows.length;
          if (/count\(/.test(sql)) read.counts++;
          return rows;
        };
      }
      return statement;
    });
  });
  return { [Symbol.dispose]: () => spies.forEach((spy) => void spy.mockRestore()) };
}
