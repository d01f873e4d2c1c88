/** Hints in the terms of each client. */
import { expect, test } from "vitest";
import { TOOL_SETS } from "../../../shared/api/mcp/more-tools.ts";
import { operations } from "../../../shared/api/operations.ts";
import { SPELLINGS, spelled, termsOf } from "../../../shared/api/spelling.ts";

const HINT = "It is in standby. Resume it with {{sandbox_resume sandbox=w}}.";
const mcp = (set: keyof typeof TOOL_SETS) => ({ kind: "mcp", tools: TOOL_SETS[set].tools }) as const;

test("a call is named in the client's terms", () => {
  expect(spelled(HINT, { kind: "http" })).toBe("It is in standby. Resume it with POST …/sandboxes/w/resume.");
  expect(spelled(HINT, { kind: "cli" })).toBe("It is in standby. Resume it with `roomd sandbox resume ROOM_ID w`.");
  expect(spelled(HINT, { kind: "sdk" })).toBe("It is in standby. Resume it with sandbox.resume().");
  expect(spelled(HINT, mcp("all"))).toBe("It is in standby. Resume it with sandbox_resume.");
});

test("a sentence about a call missing in the client is omitted", () => {
  expect(spelled(HINT, mcp("usual"))).toBe("It is in standby.");
  expect(spelled("{{sandbox_create}} makes one.", mcp("small"))).toBe("run makes one.");
  expect(spelled("Send the header Authorization: Bearer.", mcp("usual"))).toBeNull();
});

test("the client is identified by its User-Agent", () => {
  expect(
    [null, "curl/8", "roomd-cli/0.1.0", "roomd-sdk/0.1.0", "roomd-sdk-python/0.1.0"].map((each) => termsOf(each).kind),
  ).toEqual([...["http", "http", "cli", "sdk", "sdk"]]);
});

test("every name belongs to an operation", () => {
  expect(Object.keys(SPELLINGS).filter((name) => !Object.hasOwn(operations, name))).toEqual([]);
});
