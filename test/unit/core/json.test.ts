/** JSON of others: what is refused before it is parsed, and what that costs. */
import { expect, test } from "vitest";
import { parseJson } from "../../../daemon/core/json.ts";
import { threadTime } from "../../../daemon/host/thread-time.ts";

const LONG = "x".repeat(64 * 1024);

test("a long text has 20,000 values at most, or as many as its caller says, and a short one as many as fit", () => {
  const values = (count: number) => JSON.stringify([LONG, ...Array(count).fill(1)]);
  expect(parseJson(values(19_000))).toHaveLength(19_001);
  expect(() => parseJson(values(20_000))).toThrow(SyntaxError);
  expect(() => parseJson(Buffer.from(values(20_000)))).toThrow("over 20000 values");
  expect(parseJson(values(20_000), 30_000)).toHaveLength(20_001);
  expect(parseJson(`[${"[],".repeat(21_000)}0]`)).toHaveLength(21_001);
});

test("signs in strings are none", () => {
  const text = JSON.stringify({ text: '[],{"\\'.repeat(100_000) });
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test("bytes that are not UTF-8 are refused", () => {
  expect(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(TypeError);
});

test("a MiB of empty lists is refused in a fraction of the time that it takes to parse", () => {
  const text = `[${"[],".repeat(350_000)}0]`;
  const timeOf = (work: () => unknown) => {
    const from = threadTime();
    work();
    return threadTime() - from;
  };
  const refuse = () => expect(() => parseJson(text)).toThrow(SyntaxError);
  for (let warm = 0; warm < 3; warm++) [refuse(), JSON.parse(text)];
  expect(timeOf(refuse)).toBeLessThan(timeOf(() => JSON.parse(text)) / 2);
});
