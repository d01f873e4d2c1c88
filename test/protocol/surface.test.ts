/**
 * The surface of the guest protocol against the surface recorded for its generation. An agent lives in its template for months: recorded
 * fields stay as they are (VERSIONING.md), and new ones are added to surface/generation-N.json by hand.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, test } from "vitest";
import { GENERATION, type Surface, surface } from "./surface.ts";

const FILES = join(import.meta.dirname, "surface");
const written = (generation: number): Surface =>
  JSON.parse(readFileSync(join(FILES, `generation-${generation}.json`), "utf8")) as Surface;

test("every generation is described in a file", () => {
  const expected = Array.from({ length: GENERATION }, (_, index) => `generation-${index + 1}.json`);
  expect(readdirSync(FILES).sort()).toEqual(expected.sort());
});

describe(`generation ${GENERATION}`, () => {
  const now = surface();
  const then = written(GENERATION);

  test("is parsed completely: frames, methods and fields", () => {
    expect(Object.keys(now.frame.types).length).toBeGreaterThan(10);
    expect(Object.keys(now.methods)).toEqual(expect.arrayContaining(["exec", "clock", "power_off"]));
    expect(now.methods.exec).toMatchObject({ argv: "string[]", timeout_ms: "number" });
    expect(now.messages).toMatchObject({ Hello: { generation: "number" }, Welcome: { clock_ns: "string" } });
  });

  test("keeps everything that is described, with its name and meaning", () => {
    const lost = differences(then, now).filter(({ is }) => is === undefined);
    const changed = differences(then, now).filter(({ is }) => is !== undefined);
    expect({ lost, changed }, "what older agents know must stay: add beside it, or raise GENERATION").toEqual({
      lost: [],
      changed: [],
    });
  });

  test("has nothing that is not described", () => {
    const added = differences(now, then).filter(({ is }) => is === undefined);
    expect(
      added.map(({ at }) => at),
      `add it to surface/generation-${GENERATION}.json`,
    ).toEqual([]);
  });
});

/** The parts of `before` that differ in `after`. */
function differences(before: unknown, after: unknown, at = ""): { at: string; was: unknown; is: unknown }[] {
  if (typeof before !== "object" || before === null) {
    return before === after ? [] : [{ at, was: before, is: after }];
  }
  if (Array.isArray(before)) {
    const kept = new Set(Array.isArray(after) ? after : []);
    return before.filter((each) => !kept.has(each)).map((each) => ({ at: `${at}[]`, was: each, is: undefined }));
  }
  const others = typeof after === "object" && after !== null ? (after as Record<string, unknown>) : {};
  return Object.entries(before).flatMap(([name, value]) => differences(value, others[name], `${at}/${name}`));
}
