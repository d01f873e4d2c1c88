/** An export that is taken in by a page: whole, or not at all. */
import { expect, test } from "vitest";
import { collect } from "../../../daemon/web/audit/collect.ts";

const streamOf = (texts: string[], fails = false) =>
  new ReadableStream<Uint8Array<ArrayBuffer>>({
    start(controller) {
      for (const text of texts) controller.enqueue(new TextEncoder().encode(text));
      if (fails) controller.error(new Error("gone"));
      else controller.close();
    },
  });

test("an export in parts is one file, and its size so far is reported", async () => {
  const sizes: number[] = [];
  const got = await collect(streamOf(['{"seq":1}\n{"s', 'eq":2}\n']), 100, (bytes) => sizes.push(bytes));
  if (got.is !== "whole") throw new Error(got.is);
  expect(await new Blob(got.parts).text()).toBe('{"seq":1}\n{"seq":2}\n');
  expect([got.bytes, sizes]).toEqual([20, [13, 20]]);
});

test("an empty export is an empty file", async () => {
  expect(await collect(streamOf([]), 100, () => {})).toEqual({ is: "whole", parts: [], bytes: 0 });
  expect(await collect(null, 100, () => {})).toMatchObject({ is: "whole" });
});

test("an export larger than the page's limit is discarded, and not read further", async () => {
  let isCancelled = false;
  const endless = new ReadableStream<Uint8Array<ArrayBuffer>>({
    pull: (controller) => controller.enqueue(new Uint8Array(40)),
    cancel: () => {
      isCancelled = true;
    },
  });
  expect(await collect(endless, 100, () => {})).toEqual({ is: "too-long" });
  expect(isCancelled).toBe(true);
  expect(await collect(streamOf(["x".repeat(99), "\n"]), 100, () => {})).toMatchObject({ is: "whole" });
});

test.each([
  ["its connection does", [] as string[], true],
  ["the service reports an error", ['{"seq":1}\n', '{"type":"er', 'ror","code":"internal"}\n'], false],
  ["a line has no end", ['{"seq":1}\n{"seq"'], false],
])("an interrupted export is discarded: %s", async (_, texts, fails) => {
  expect(await collect(streamOf(texts, fails), 1000, () => {})).toEqual({ is: "broken" });
});
