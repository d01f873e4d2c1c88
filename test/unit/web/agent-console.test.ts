/** Reading a log from its end, of a service that reads it only from its beginning. */
import { describe, expect, test } from "vitest";
import { type AskLog, readAfter, readBefore, readEnd } from "../../../daemon/web/agent/console-pages.ts";

/** As the daemon reads: whole lines from an offset on; `dropped`: lines that are no longer kept. */
function logOf(lines: readonly string[], dropped = 0) {
  let offset = 0;
  const all = lines.map((line) => {
    const at = offset;
    offset += line.length + 1;
    return { offset: at, line };
  });
  const kept = all.slice(dropped);
  const begin = kept[0]?.offset ?? 0;
  let callCount = 0;
  const ask: AskLog = async (after, limit) => {
    callCount++;
    const from = Math.max(after, begin);
    const items = kept
      .filter((each) => each.offset + each.line.length >= from)
      .slice(0, limit)
      .map((each) => (each.offset < from ? { offset: from, line: each.line.slice(from - each.offset) } : each));
    const last = items.at(-1);
    return { items, next_after: last ? last.offset + last.line.length + 1 : from };
  };
  return { ask, kept, asked: () => callCount };
}

const many = (count: number) => Array.from({ length: count }, (_, n) => `[${n}] ${"x".repeat(n % 60)}`);

describe("a short log", () => {
  test("is available immediately", async () => {
    const { ask, kept, asked } = logOf(many(10));
    expect(await readEnd(ask)).toMatchObject({ lines: kept, isFirst: true });
    expect(asked()).toBe(1);
  });
  test("is empty if there was no output", async () => {
    expect(await readEnd(logOf([]).ask)).toMatchObject({ lines: [], isFirst: true });
  });
});

describe.each([0, 7000])("a long log, of which %i lines were dropped", (dropped) => {
  test("is read from its end to its beginning without a gap, in few responses", async () => {
    const { ask, kept, asked } = logOf(many(40_000), dropped);
    let part = await readEnd(ask);
    expect(part.lines.at(-1)).toEqual(kept.at(-1));
    expect(part.lines[0]?.line).toMatch(/^\[\d+\]/);
    expect(asked()).toBeLessThan(30);
    let lines = part.lines;
    while (!part.isFirst) {
      part = await readBefore(ask, part);
      lines = [...part.lines, ...lines];
    }
    expect(lines).toEqual(kept);
  });

  test("continues at its end", async () => {
    const before = logOf(many(40_000), dropped);
    const end = await readEnd(before.ask);
    const now = logOf(many(40_005), dropped);
    expect((await readAfter(now.ask, end)).lines).toEqual(now.kept.slice(-5));
  });
});
