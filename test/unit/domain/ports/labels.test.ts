/** Labels of exposed ports: unique on whatever host they are made, and names that a host may have. */
import { expect, test } from "vitest";
import { newLabel } from "../../../../daemon/domain/ports/tokens.ts";
import { sandboxExposePort } from "../../../../shared/api/ports.ts";

const LABEL_OF_DNS = /^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$/;
const RANDOM = /^[a-z2-7]{26}$/;

test("a label has 130 random bits, independent of the host", () => {
  const labels = Array.from({ length: 2000 }, () => newLabel(null));
  expect(labels.filter((label) => !RANDOM.test(label))).toEqual([]);
  expect(new Set(labels).size).toBe(labels.length);
  // Each letter carries 5 bits at every place: none occurs in much more than one of 32 labels.
  for (let place = 0; place < 26; place++) {
    const seen = new Map<string, number>();
    for (const label of labels) seen.set(label[place] ?? "", (seen.get(label[place] ?? "") ?? 0) + 1);
    expect(seen.size).toBe(32);
    expect(Math.max(...seen.values())).toBeLessThan((labels.length / 32) * 2.5);
  }
});

test("the longest requested name gives a valid DNS label", () => {
  const { label } = sandboxExposePort.body.properties;
  const longest = "a".repeat(60).slice(0, longestOf(label.pattern));
  expect(new RegExp(label.pattern ?? "").test(`${longest}a`)).toBe(false);
  expect(newLabel(longest)).toMatch(LABEL_OF_DNS);
  expect(newLabel(longest)).toHaveLength(longest.length + 27);
});

/** How many characters the pattern takes. */
function longestOf(pattern: string | undefined): number {
  const fits = (length: number) => new RegExp(pattern ?? "").test("a".repeat(length));
  let length = 1;
  while (fits(length + 1) && length < 60) length++;
  return length;
}
