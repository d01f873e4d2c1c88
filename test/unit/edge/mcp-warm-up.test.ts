/** The warm-up of the MCP SDK: its requests are such that the SDK answers each. */
import { expect, test } from "vitest";
import { warmUp } from "../../../daemon/edge/mcp/warm-up.ts";
import { longestTurn } from "../../harness/longest-turn.ts";

test("answers requests of both generations of the protocol", async () => {
  expect(await warmUp()).toEqual([200, 200, 200, 200, 200, 200]);
});

test("leaves nothing to compile for the requests after it", async () => {
  await warmUp();
  expect(await longestTurn(warmUp)).toBeLessThan(10);
});
