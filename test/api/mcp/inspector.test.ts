/** The official MCP inspector's command line as a client: it lists the tools, finds nothing in their schemas that a client could not read, and calls them. */
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { callOf, inspect } from "../../harness/clients/mcp-inspector.ts";
import { rowOf, TOOL_LIST } from "../../harness/clients/tool-calls.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { shortOrLong } from "../../harness/guests.ts";

/** Exit codes of the inspector. */
const EXIT = { ok: 0, tool_failed: 5 };

/** Each separate process takes half a second. */
const ERAS = { http: ["legacy", "modern"], stdio: ["modern", "legacy"] } as const;
const eras = shortOrLong("the inspector's generations of the protocol, each over HTTP and stdio", 1, 2);
const calls = shortOrLong("tools called by the inspector", 2, TOOL_LIST.length);
const called = ["health", "sandbox_exec", ...TOOL_LIST.map(({ name }) => name)].filter(isFirst).slice(0, calls);
const ways = (["http", "stdio"] as const).flatMap((way) => ERAS[way].slice(0, eras).map((era) => ({ way, era })));

function isFirst(name: string, index: number, names: readonly string[]): boolean {
  return names.indexOf(name) === index;
}

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

describe.each(ways)("the inspector over $way, $era", ({ way, era }) => {
  test("lists every tool, with schemas that any client can read", async () => {
    const { status, result, stderr } = await inspect(daemon, { way, era }, ["tools/list", "--strict"]);
    expect({ status, stderr }).toMatchObject({ status: EXIT.ok });
    expect(result.tools.map(({ name }: Json) => name)).toEqual(TOOL_LIST.map(({ name }) => name));
  });

  test("calls tools, and reports the failed ones", { timeout: 120_000 }, async () => {
    const room = `${way}-${era}`;
    await daemon.room(room);
    // The tool that destroys the room is last.
    const inOrder = TOOL_LIST.toSorted((one, two) => +(one.name === "room_destroy") - +(two.name === "room_destroy"));
    for (const tool of inOrder.filter(({ name }) => called.includes(name))) {
      const { args, without_guests: code } = rowOf(tool);
      const { status, result, stderr } = await inspect(daemon, { way, era }, callOf(tool.name, args(room)));
      const expected = code === undefined ? { ok: true } : { ok: false, code };
      const ended = code === undefined ? EXIT.ok : EXIT.tool_failed;
      expect({ name: tool.name, status, told: result?.structuredContent, stderr }).toMatchObject({
        ...{ name: tool.name, status: ended, told: expected },
      });
    }
  });
});
