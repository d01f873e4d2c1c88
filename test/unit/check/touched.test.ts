/** The choice of tests for a change: by imports, by noun, and within a time. */
import { expect, test } from "vitest";
import { nounOf, touchedTests, withinTime } from "../../check/touched.ts";

const source = (path: string, ...imports: string[]) => ({
  path,
  text: imports.map((each) => `import { x } from "${each}";`).join("\n"),
});

const SOURCES = [
  source("daemon/core/log.ts"),
  source("daemon/domain/ports/expose.ts", "../../core/log.ts"),
  source("daemon/domain/ports/index.ts", "./expose.ts"),
  source("daemon/compose/compose.ts", "../domain/ports/index.ts"),
  source("test/harness/exposed.ts", "../../daemon/domain/ports/index.ts"),
  source("test/unit/domain/ports/expose.test.ts", "../../../../daemon/domain/ports/expose.ts"),
  source("test/unit/domain/ports/links.test.ts"),
  source("test/unit/compose/compose.test.ts", "../../../daemon/compose/compose.ts"),
  source("test/api/rooms/ports.test.ts"),
  source("test/api/reports.test.ts"),
  source("test/vm/ports-vite.test.ts", "../harness/exposed.ts"),
];

const chosen = (...changed: string[]) => touchedTests(changed, SOURCES).map(({ file, distance }) => [file, distance]);

test("a change touches its importers, then the tests of its noun", () => {
  expect(chosen("daemon/domain/ports/expose.ts")).toEqual([
    ["test/unit/domain/ports/expose.test.ts", 1],
    ["test/api/rooms/ports.test.ts", 1.5],
    ["test/unit/domain/ports/links.test.ts", 1.5],
    ["test/unit/compose/compose.test.ts", 3],
    ["test/vm/ports-vite.test.ts", 3],
  ]);
});

test("a changed test comes first; a deleted test is not chosen", () => {
  expect(chosen("test/api/reports.test.ts", "test/api/gone.test.ts", "daemon/core/log.ts")).toEqual([
    ["test/api/reports.test.ts", 0],
    ["test/unit/domain/ports/expose.test.ts", 2],
  ]);
});

test("each choice has a reason", () => {
  const [first, second] = touchedTests(["daemon/domain/ports/expose.ts"], SOURCES);
  expect(first?.why).toBe("imports daemon/domain/ports/expose.ts");
  expect(second?.why).toMatch(/\bports, .*daemon\/domain\/ports\/expose\.ts$/);
});

test.each([
  ["daemon/domain/ports/expose.ts", "ports"],
  ["daemon/host/guest/adopt.ts", "guest"],
  ["daemon/cli/commands/exec/exec.ts", "cli"],
  ["shared/api/rooms.ts", "rooms"],
  ["guest-agent/exec/run.ts", "exec"],
  ["sdk/python/src/roomd/room.py", "sdk"],
  ["daemon/core/log.ts", null],
  ["README.md", null],
])("%s belongs to %s", (path, noun) => {
  expect(nounOf(path)).toBe(noun);
});

test("the closest tests that fit into the time are run; tests with guests only if they changed themselves", () => {
  const touched = (file: string, distance: number) => ({ file, why: "", distance });
  const tests = [
    touched("test/vm/changed.test.ts", 0),
    touched("test/api/long.test.ts", 1),
    touched("test/vm/near.test.ts", 1),
    touched("test/unit/short.test.ts", 2),
  ];
  const secondsOf = (file: string) => (file === "test/api/long.test.ts" ? 100 : 20);
  const { chosen, left } = withinTime(tests, secondsOf, 40);
  expect(chosen.map(({ file }) => file)).toEqual(["test/vm/changed.test.ts", "test/unit/short.test.ts"]);
  expect(left.map(({ file }) => file)).toEqual(["test/api/long.test.ts", "test/vm/near.test.ts"]);
});
