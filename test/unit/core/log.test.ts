import { fstatSync } from "node:fs";
import { expect, test } from "vitest";
import { asJson, countLog, forJournal, formatOfStderr, makeLog } from "../../../daemon/core/log.ts";

test("a line contains no control characters and parses to the logged values", () => {
  const lines: string[] = [];
  const log = makeLog("info", (line) => lines.push(line), asJson);
  const name = "\u009b31m\u007f\u0085\u001b[2J\n";
  log.info("a guest said", { name });
  const [line = ""] = lines;
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  expect(line.trimEnd()).not.toMatch(/[\u0000-\u001f\u007f-\u009f]/);
  expect(JSON.parse(line)).toMatchObject({ message: "a guest said", name });
});

test("warnings and errors are counted, also with added fields and if nothing is written", () => {
  const lines: string[] = [];
  const { log, counts } = countLog(makeLog("error", (line) => lines.push(line)));
  log.info("nothing");
  log.warn("one");
  log.with({ a: 1 }).with({ b: 2 }).error("other", { c: 3 });
  expect(counts).toEqual({ warn: 1, error: 1 });
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([{ message: "other", a: 1, b: 2, c: 3 }]);
});

test("in the journal a line is plain text, with its priority and without its time", () => {
  const lines: string[] = [];
  const log = makeLog("info", (line) => lines.push(line), forJournal).with({ sandbox_id: "sbx_1" });
  log.warn("guest connection lost", { reason: "the guest closed it", after_ms: 12, left: undefined });
  log.error("two\nlines", { name: "\u009b31m\n" });
  expect(lines).toEqual([
    '<4>guest connection lost sandbox_id=sbx_1 reason="the guest closed it" after_ms=12\n',
    '<3>"two\\nlines" sandbox_id=sbx_1 name="\\u009b31m\\n"\n',
  ]);
});

test("the journal is recognized by the stream that systemd names, not by an inherited variable", () => {
  const { dev, ino } = fstatSync(process.stderr.fd);
  expect(formatOfStderr({ JOURNAL_STREAM: `${dev}:${ino}` })).toBe(forJournal);
  expect(formatOfStderr({ JOURNAL_STREAM: "1:1" })).toBe(asJson);
  expect(formatOfStderr({})).toBe(asJson);
});

test("the level changes at run time, for every log with the same threshold", () => {
  const lines: string[] = [];
  const threshold = { level: "info" as "info" | "debug" };
  const log = makeLog(threshold, (line) => lines.push(line), forJournal).with({ part: "x" });
  log.debug("not heard");
  threshold.level = "debug";
  log.debug("heard");
  expect(lines).toEqual(["<7>heard part=x\n"]);
});
