/** Messages and agents in a file from outside: everything that a room can have is accepted, and nothing else. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Rows } from "../../../../daemon/db/branch.ts";
import { UntrustedRows } from "../../../../daemon/db/untrusted-rows.ts";
import { acceptAgents } from "../../../../daemon/domain/agents/foreign.ts";
import { acceptBarriers } from "../../../../daemon/domain/barriers/foreign.ts";
import { acceptFabric, type FabricState } from "../../../../daemon/domain/fabric/untrusted.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { Chance } from "../../../harness/random.ts";
import { World } from "./branch-world.ts";
import { Rooms } from "./rooms-fixture.ts";

const DAY = 24 * 3600_000;
const ORG = "org_1" as OrgId;
const chance = new Chance();
const rooms = new Rooms();
let fabric: FabricState;
let agents: { agents: Rows; gone: string[] };

beforeAll(async () => {
  const world = new World(rooms, chance, "busy");
  await world.begin();
  await world.live(100);
  const state = await rooms.take("busy");
  fabric = state.fabric as FabricState;
  agents = state.agents as typeof agents;
});
afterAll(() => rooms[Symbol.asyncDispose]());

const origin = () => ({ takenAtMs: Date.now() });
const accept = (given: unknown) => acceptFabric(given, origin());

/** The state with one row replaced, or with another row added. */
function withRow(table: "messages" | "deliveries", change: (row: Record<string, unknown>) => object, isMore = false) {
  const { columns, rows } = fabric[table];
  const of = (row: unknown[]) => Object.fromEntries(columns.map((column, at) => [column, row[at]]));
  const at = rows.findIndex((row) => (table === "messages" ? String(of(row).recipients) !== "[]" : true));
  const was = of(rows[at] ?? []);
  const made = { ...was, ...change(was) } as Record<string, unknown>;
  const row = columns.map((column) => made[column]);
  return { ...fabric, [table]: { columns, rows: isMore ? [...rows, row] : rows.with(at, row as never) } };
}

test(`a room's own state is accepted unchanged, with the same size as its rows (seed ${chance.seed})`, async () => {
  const { state, bytes } = await accept(structuredClone(fabric));
  expect(state).toEqual(fabric);
  expect(state.messages.rows.length).toBeGreaterThan(10);
  expect(bytes).toBe(rooms.bytesOf("busy").rows);
  expect(await acceptAgents(structuredClone(agents), origin())).toEqual(agents);
});

test(`and so is that of a room that was stored for a day and then used (seed ${chance.seed})`, async () => {
  const world = new World(rooms, chance, "before");
  await world.begin();
  await world.live(60);
  const copied = world.copy("after", "after");
  copied.expiring = 0;
  await rooms.put("after", await rooms.take("before"), DAY);
  await copied.live(60);
  const taken = await rooms.take("after");
  expect((await accept(structuredClone(taken.fabric))).state).toEqual(taken.fabric);
  expect(await acceptBarriers(structuredClone(taken.barriers), origin())).toEqual(taken.barriers);
  expect(await acceptAgents(structuredClone(taken.agents), origin())).toEqual(taken.agents);
});

const later = (ms: number) => new Date(Date.now() + ms).toISOString();

test.each<[string, () => unknown]>([
  ["a delivery to another", () => withRow("deliveries", () => ({ agent_id: "stranger" }))],
  ["a delivery that is listed twice", () => withRow("deliveries", () => ({}), true)],
  [
    "a recipient twice",
    () =>
      withRow("messages", ({ recipients }) => {
        const [first] = JSON.parse(String(recipients));
        return { recipients: JSON.stringify([first, first]) };
      }),
  ],
  [
    "more recipients than a file has rows",
    () => {
      const agents = JSON.stringify(Array.from({ length: 10_000 }, (_, at) => `a${at}`));
      const { columns, rows } = fabric.messages;
      const [first = []] = rows;
      const changes = (at: number): Record<string, unknown> => ({
        seq: at + 1,
        message_id: `m${at}`,
        recipients: agents,
      });
      const many = Array.from({ length: 101 }, (_, at) =>
        columns.map((column, place) => (column in changes(at) ? changes(at)[column] : first[place])),
      );
      return {
        ...fabric,
        last_seq: 1000,
        messages: { columns, rows: many },
        deliveries: { ...fabric.deliveries, rows: [] },
      };
    },
  ],
  ...["acked", "read", "expired", "undeliverable"].map((state): [string, () => unknown] => [
    `one that is ${state} and due`,
    () => withRow("deliveries", () => ({ state, due_at_ms: 1, expires_at_ms: 2 })),
  ]),
  ["a queued delivery due without an end", () => withRow("deliveries", () => due("queued", 1, null))],
  ["a delivery due after its end", () => withRow("deliveries", () => due("delivered", 2, 1))],
  ["a delivery due in a year", () => withRow("deliveries", () => due("delivered", Date.now() + 365 * DAY, null))],
  ["a delivery that ends in a year", () => withRow("deliveries", () => due("queued", null, Date.now() + 365 * DAY))],
  ["a message that is still to be sent", () => withRow("messages", () => ({ created_at: later(DAY) }))],
  ["a message that ends in a year", () => withRow("messages", () => ({ expires_at: later(365 * DAY) }))],
])("%s is rejected", async (_what, forge) => {
  await expect(accept(forge())).rejects.toThrow(UntrustedRows);
});

const due = (state: string, due_at_ms: number | null, expires_at_ms: number | null) => ({
  ...{ state, due_at_ms, expires_at_ms, ack_required: 1 },
});

test("an agent last seen in the future is rejected", async () => {
  const { columns, rows } = agents.agents;
  const at = columns.indexOf("last_seen_at");
  const [first = []] = rows;
  const forged = { ...agents, agents: { columns, rows: rows.with(0, first.with(at, later(DAY))) } };
  await expect(acceptAgents(forged, origin())).rejects.toThrow(UntrustedRows);
});

test("messages above an organization's space are rejected during reading, before any is written", async () => {
  const small = new Rooms({ keptBytes: 1024 });
  try {
    const { branch } = small.fabric;
    const given = () => structuredClone(fabric);
    await expect(branch.accept(given(), { ...origin(), org_id: ORG })).rejects.toMatchObject({
      code: "quota_exceeded",
    });
    await branch.accept(given(), { ...origin(), org_id: null });
  } finally {
    await small[Symbol.asyncDispose]();
  }
});
