/** Untrusted JSON: the texts that are refused before they are parsed. */
import { expect, test, vi } from "vitest";
import { parseJson } from "../../../daemon/core/json.ts";

const LONG = "x".repeat(64 * 1024);

test("a long text may have 20,000 values or the caller's limit, a short one any number", () => {
  const values = (count: number) => JSON.stringify([LONG, ...Array(count).fill(1)]);
  expect(parseJson(values(19_000))).toHaveLength(19_001);
  expect(() => parseJson(values(20_000))).toThrow(SyntaxError);
  expect(() => parseJson(Buffer.from(values(20_000)))).toThrow("over 20000 values");
  expect(parseJson(values(20_000), 30_000)).toHaveLength(20_001);
  expect(parseJson(`[${"[],".repeat(21_000)}0]`)).toHaveLength(21_001);
});

test("brackets within strings do not count", () => {
  const text = JSON.stringify({ text: '[],{"\\'.repeat(100_000) });
  expect(parseJson(text)).toEqual(JSON.parse(text));
});

test("bytes that are not UTF-8 are rejected", () => {
  expect(() => parseJson(Uint8Array.of(0x22, 0xff, 0x22))).toThrow(TypeError);
});

test("a MiB of empty lists is rejected before it is parsed", () => {
  const parse = vi.spyOn(JSON, "parse");
  expect(() => parseJson(`[${"[],".repeat(350_000)}0]`)).toThrow(SyntaxError);
  expect(parse).not.toHaveBeenCalled();
  parse.mockRestore();
});
