/** How the previous daemon ended, from the record that it left. */
import { existsSync, mkdtempSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { isCrash, leaveExit, takeCrash } from "../../../daemon/host/last-exit.ts";

test.each([
  ["core-dump SEGV", true],
  ["core-dump ABRT", true],
  ["exit-code 125", true],
  ["watchdog ABRT", true],
  ["oom-kill KILL", true],
  ["signal SEGV", true],
  ["exception", true],
  // The disk has failed.
  ["exit-code 74", false],
  // It was ended from outside.
  ["success 0", false],
  ["signal KILL", false],
  ["signal TERM", false],
  ["timeout TERM", false],
  ["", false],
])("%j is a crash: %s", (text, expected) => expect(isCrash(text)).toBe(expected));

test("it is reported once", () => {
  const file = join(mkdtempSync("/tmp/roomd-u-"), "last-end");
  expect(takeCrash(file)).toBe(null);
  leaveExit(file, "exception");
  expect([takeCrash(file), takeCrash(file), existsSync(file)]).toEqual(["exception", null, false]);
  writeFileSync(file, "signal KILL\n");
  expect([takeCrash(file), existsSync(file)]).toEqual([null, false]);
});
