/** The warm-up of the MCP SDK: its requests are such that the SDK answers each, and later ones compile nothing. */
import { expect, test } from "vitest";
import { warmUp } from "../../../daemon/edge/mcp/warm-up.ts";
import { longestTurn } from "../../harness/event-loop/longest-turn.ts";

test("gets responses in both generations of the protocol, and later requests compile nothing", async () => {
  const answered: number[][] = [];
  const turns: number[] = [];
  for (let run = 0; run < 5; run++) turns.push(await longestTurn(async () => void answered.push(await warmUp())));
  for (const statuses of answered) expect(statuses).toEqual([200, 200, 200, 200, 200, 200]);
  const [first = 0, ...later] = turns;
  // Of several, since a collection of garbage is a turn as well.
  expect(Math.min(...later)).toBeLessThan(first / 2);
});
