/** The answer to a call of an unknown tool: short, and with the tool that was probably meant. */
import { expect, test } from "vitest";
import { noSuchTool } from "../../../daemon/edge/mcp/nearest-tool.ts";
import { TOOL_SETS } from "../../../shared/api/mcp/more-tools.ts";

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
    hint: expect.stringMatching(/\bfs_read\b.* 82/),
  });
  expect(noSuchTool("qqqqqqqq", MANY).hint).toMatch(/\bfs_read, room_create, .* \d+ .*tools\/list\.$/);
});

const USUAL = [...TOOL_SETS.usual.tools.keys()];

test.each([
  ["sandbox_delete", "sandbox_destroy"],
  ["sandbox_list", "room_get"],
  ["list_sandboxes", "room_get"],
  ["sandbox_get", "room_get"],
  ["fs_delete", "sandbox_exec"],
  ["sandbox_resume", "sandbox_exec"],
])("of the usual tools %s is nearest to %s", (name, nearest) => {
  expect(noSuchTool(name, USUAL)).toMatchObject({ nearest });
});

test.each(["sandbox_snapshot", "sandbox_hibernate", "room_checkpoint", "template_build"])(
  "%s, which another set has, is reported with that set, without a nearest tool",
  (name) => {
    const answer = noSuchTool(name, USUAL);
    expect(answer.detail).toMatch(new RegExp(` ${name}\\b.*/mcp/all`));
    expect(answer).not.toHaveProperty("nearest");
    expect(2 * Buffer.byteLength(JSON.stringify(answer))).toBeLessThanOrEqual(1000);
  },
);
