/** The answer to a call of an unknown tool: short, and with the tool that was probably meant. */
import { expect, test } from "vitest";
import { noSuchTool } from "../../../daemon/edge/mcp/nearest-tool.ts";

const MANY = ["fs_read", "room_create", ...Array.from({ length: 80 }, (_, at) => `another_tool_with_a_name_${at}`)];

test.for(["read_file", "qqqqqqqq", "x".repeat(5000)])(
  "to %s it is within a kilobyte, as text and as content",
  (name) => {
    const answer = noSuchTool(name, MANY);
    expect(answer).toMatchObject({ ok: false, code: "tool_not_found" });
    expect(2 * Buffer.byteLength(JSON.stringify(answer))).toBeLessThanOrEqual(1000);
  },
);

test("it names the nearest tool, else the first ones and the number of the others", () => {
  expect(noSuchTool("read_file", MANY)).toMatchObject({
    nearest: "fs_read",
    hint: "Use fs_read; tools/list has all 82.",
  });
  expect(noSuchTool("qqqqqqqq", MANY).hint).toMatch(/^Tools: fs_read, room_create, .*, and \d+ more in tools\/list\.$/);
});
