/** Which trace the SDK's calls continue. */
import { expect, test } from "vitest";
import { continuing } from "../../../sdk/typescript/src/index.ts";
import { traceparentOf } from "../../../sdk/typescript/src/trace.ts";

const [ONE, OTHER] = ["1", "2"].map((digit) => `00-${digit.repeat(32)}-${digit.repeat(16)}-01`) as [string, string];

test("that of the calling context, also after an await", async () => {
  const message = { headers: { traceparent: ONE, other: "fact" } };
  await continuing(message, async () => {
    await Promise.resolve();
    expect(traceparentOf(OTHER)).toBe(ONE);
    expect(continuing(OTHER, () => traceparentOf(undefined))).toBe(OTHER);
    expect(traceparentOf(OTHER)).toBe(ONE);
  });
  expect(traceparentOf(undefined)).toBe(undefined);
});

test("two concurrent contexts do not affect each other", async () => {
  const handled = [ONE, OTHER].map((place) =>
    continuing(place, async () => {
      await new Promise((resolve) => setImmediate(resolve));
      return traceparentOf(undefined);
    }),
  );
  expect(await Promise.all(handled)).toEqual([ONE, OTHER]);
});

test("otherwise the default; an invalid traceparent counts as none", async () => {
  expect(traceparentOf(() => ONE)).toBe(ONE);
  expect(continuing({ headers: {} }, () => traceparentOf(ONE))).toBe(ONE);
  for (const odd of ["", "00", `${ONE}\r\nX-Of-Mine: 1`, ONE.toUpperCase().replace("1", "A")]) {
    expect(traceparentOf(odd)).toBe(undefined);
    expect(continuing(odd, () => traceparentOf(OTHER))).toBe(OTHER);
  }
});
