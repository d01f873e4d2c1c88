import { expect, test } from "vitest";
import { countLog, makeLog } from "../../../daemon/core/log.ts";

test("a line steers no terminal, and says what was said", () => {
  const lines: string[] = [];
  const log = makeLog("info", (line) => lines.push(line));
  const name = "\u009b31m\u007f\u0085\u001b[2J\n";
  log.info("a guest said", { name });
  const [line = ""] = lines;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  expect(line.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  expect(JSON.parse(line)).toMatchObject({ message: "a guest said", name });
});

test("warnings and errors are counted, also by whoever adds fields, and where nothing is written", () => {
  const lines: string[] = [];
  const { log, counts } = countLog(makeLog("error", (line) => lines.push(line)));
  log.info("nothing");
  log.warn("one");
  log.with({ a: 1 }).with({ b: 2 }).error("other", { c: 3 });
  expect(counts).toEqual({ warn: 1, error: 1 });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ message: "other", a: 1, b: 2, c: 3 }]);
});
