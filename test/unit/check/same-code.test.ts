/** Comparison of syntax trees without comments: which changes count as a change of code. */
import { describe, expect, test } from "vitest";
import { codeOf } from "../../check/same-code.ts";

const codesOf = (before: string, after: string, isTextFree = false) => [
  codeOf("a.tsx", before, isTextFree),
  codeOf("a.tsx", after, isTextFree),
];

describe("equal code", () => {
  test.each([
    ["a comment", "/** One. */ const a = 1n; // two", "// Three.\nconst a = 1n;"],
    ["a line break", "f(a, b)", "f(\n  a, // the first\n  b)"],
    ["a comment of JSX", "<p>{/* one */}</p>", "<p>{/* two */}</p>"],
  ])("differs in %s alone", (_, before, after) => {
    const [one, other] = codesOf(before, after);
    expect(one).toBe(other);
  });
});

describe("different code", () => {
  test.each([
    ["a type", "let a: string", "let a: number"],
    ["a directive", "// @ts-expect-error one\nf(1)", "// one\nf(1)"],
    ["a text", 'f("one")', 'f("two")'],
    ["a comment's end", "/* one */ f(1)", "/* one f(1) */"],
  ])("differs in %s", (_, before, after) => {
    const [one, other] = codesOf(before, after);
    expect(one).not.toBe(other);
  });

  test("differs from a change of text alone", () => {
    const [one, other] = codesOf(`f("one", \`two \${a}\`, <b>three</b>)`, `f("1", \`2 \${a}\`, <b>3</b>)`, true);
    expect(one).toBe(other);
    const [call, otherCall] = codesOf('f("one")', 'g("one")', true);
    expect(call).not.toBe(otherCall);
  });

  test("includes a file that cannot be parsed", () => {
    expect(() => codeOf("a.ts", "const = 1")).toThrow(/a\.ts/);
  });
});
