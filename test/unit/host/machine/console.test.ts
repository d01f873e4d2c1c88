import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { expect, test } from "vitest";
import { ConsoleLog, readConsole } from "../../../../daemon/host/machine/console.ts";

const all = () => true;

function written(text: string) {
  const path = mkdtempSync(join(tmpdir(), "roomd-console-"));
  const log = new ConsoleLog(path);
  log.append(Buffer.from(text));
  log.close();
  return { path, [Symbol.dispose]: () => rmSync(path, { recursive: true }) };
}

test("lines come with their places, and the next reading goes on after them", () => {
  using log = written("one\r\ntwo\nthr");
  const first = readConsole(log.path, 0, 1, all);
  expect(first).toEqual({ lines: [{ offset: 0, line: "one" }], next: 5 });
  expect(readConsole(log.path, first.next, 9, all)).toEqual({ lines: [{ offset: 5, line: "two" }], next: 9 });
  expect(readConsole(log.path, 9, 9, all)).toEqual({ lines: [], next: 9 });
});

test("the limit counts what is wanted, however much lies between", () => {
  const noise = "kernel: noise\n".repeat(5000);
  using log = written(`${noise}agent: a\n${noise}agent: b\n${noise}agent: c\n`);
  const isWanted = (line: string) => line.startsWith("agent: ");
  const { lines, next } = readConsole(log.path, 0, 2, isWanted);
  expect(lines.map(({ line }) => line)).toEqual(["agent: a", "agent: b"]);
  expect(readConsole(log.path, next, 2, isWanted).lines.map(({ line }) => line)).toEqual(["agent: c"]);
});
