import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readForeignState } from "../../../../daemon/domain/rooms/backup/state.ts";
import { renamed } from "../../../../daemon/domain/rooms/checkpoints/fork.ts";
import {
  type RoomState,
  readState,
  rowsIn,
  writeState,
} from "../../../../daemon/domain/rooms/checkpoints/room-state.ts";

let place = "";
beforeEach(() => {
  place = mkdtempSync(join(tmpdir(), "state-"));
});
afterEach(() => rmSync(place, { recursive: true, force: true }));

const rows = (count: number) => Array.from({ length: count }, (_, at) => [at, `text ${at}\n`, null]);
const STATE: RoomState = {
  nouns: {
    agents: { agents: { columns: ["a"], rows: [] }, gone: ["x"] },
    fabric: {
      last_seq: 7,
      messages: { columns: ["a", "b", "c"], rows: rows(1234) },
      deliveries: { columns: [], rows: [] },
    },
    barriers: { barriers: { columns: ["a", "b", "c"], rows: rows(1) }, gone: [] },
  },
  calls: { calls: { sbx_1: [{ path: "/v1/rooms/r/messages", begun: null }] } },
};

test("a state is read back unchanged, from lines of bounded length", async () => {
  const file = join(place, "state.ndjson");
  const bytes = await writeState(file, STATE);
  expect(readFileSync(file)).toHaveLength(bytes);
  expect(readFileSync(file, "utf8").split("\n")).toHaveLength(6);
  expect(await readState(file)).toEqual(STATE);
});

test("its rows are counted, and an untrusted file with too many is rejected before any other check", async () => {
  expect(rowsIn(STATE.nouns)).toBe(1235);
  const file = join(place, "state.ndjson");
  const line = `${JSON.stringify({ rows: 0, some: [[1]] })}\n`;
  writeFileSync(file, line.repeat(300_001));
  const nouns = {} as Parameters<typeof readForeignState>[1];
  await expect(readForeignState(file, nouns, { takenAtMs: 0, org_id: null })).rejects.toThrow("more than 300000");
});

test("lines are short for long rows too, and a very long row has its own line", async () => {
  const file = join(place, "state.ndjson");
  const long = (count: number, length: number) => Array.from({ length: count }, (_, at) => [at, "x".repeat(length)]);
  const columns = ["a", "b"];
  const barriers = { columns, rows: [...long(400, 10_000), ...long(2, 300_000)] };
  const state = { ...STATE, nouns: { ...STATE.nouns, barriers: { barriers, gone: [] } } };
  await writeState(file, state);
  const lines = readFileSync(file, "utf8").split("\n");
  expect(Math.max(...lines.map(({ length }) => length))).toBeLessThan(310_000);
  expect(lines.length).toBeLessThan(40);
  expect(await readState(file)).toEqual(state);
});

test("a truncated file is rejected", async () => {
  const file = join(place, "state.ndjson");
  await writeState(file, STATE);
  const text = readFileSync(file, "utf8");
  writeFileSync(file, text.slice(0, text.lastIndexOf("\n", text.length - 2) + 1));
  await expect(readState(file)).rejects.toThrow("incomplete");
});

test("guest calls continue under the name of the new room, and no others", () => {
  expect(renamed("/v1/rooms/old/messages", ["old"], "new")).toBe("/v1/rooms/new/messages");
  expect(renamed("/v1/rooms/a%20b/messages/x", ["old", "a b"], "new")).toBe("/v1/rooms/new/messages/x");
  for (const path of ["/v1/rooms/older/messages", "/v1/me", "/v1/rooms/old"]) {
    expect(renamed(path, ["old"], "new")).toBe(path);
  }
});
