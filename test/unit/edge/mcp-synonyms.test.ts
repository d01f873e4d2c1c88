/** Synonyms of a tool's arguments. */
import { expect, test } from "vitest";
import { understand } from "../../../daemon/edge/mcp/synonyms.ts";
import { SMALL_TOOLS } from "../../../shared/api/mcp/small-tools.ts";
import type { Tool } from "../../../shared/api/mcp/tool.ts";

const RUN = SMALL_TOOLS.get("run") as Tool;

test("are accepted among a few arguments, and not searched among very many", () => {
  expect(understand(RUN, { cmd: "ls" })).toEqual({ given: { command: "ls" }, taken: ["cmd as command"] });
  const many = Object.fromEntries(Array.from({ length: 10_000 }, (_, at) => [`unknown_${at}`, 1]));
  expect(understand(RUN, { cmd: "ls", ...many })).toEqual({ given: { cmd: "ls", ...many }, taken: [] });
});
