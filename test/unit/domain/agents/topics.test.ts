import { expect, test } from "vitest";
import { matchesTopic } from "../../../../daemon/domain/agents/topics.ts";

test.each([
  ["a", "a", true],
  ["a", "b", false],
  ["a", "a.b", false],
  ["a.b", "a", false],
  ["*", "a", true],
  ["*", "a.b", false],
  ["a.*.c", "a.b.c", true],
  ["a.*.c", "a.b.d", false],
  [">", "a", true],
  [">", "a.b.c", true],
  ["a.>", "a", false],
  ["a.>", "a.b.c", true],
  ["*.>", "a.b", true],
])("%s names %s: %s", (pattern, topic, names) => {
  expect(matchesTopic(pattern, topic)).toBe(names);
});
