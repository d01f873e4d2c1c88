/**
 * The daemon's clock: only daemon/core/clock.ts reads the runtime's clocks and sets its timers, so that a test moves them together and each
 * use chooses between wall-clock and monotonic time. The list of exceptions only shrinks.
 *
 * Out of scope: the command line and the hub, which are separate programs without time in common with the daemon; guest-agent, which runs
 * on the guest's clock and imports no file of the host; shared, which both sides load (it reads the time for ids alone, and a test's clock
 * moves it as well).
 */
import { expect, test } from "vitest";
import { codeOf, codeOfDaemon, linesThatMatch, type Source } from "./sources.ts";

const CLOCK = "daemon/core/clock.ts";
const EXCEPTIONS: readonly { file: string; why: string }[] = [
  {
    file: "daemon/core/loop/index.ts",
    why: "the scheduler measures how long the process really computes, which a moved clock would falsify",
  },
];

const RUNTIME =
  /\bDate\.now\b|\bnew Date\(\)|\bperformance\s*\.|\b(set|clear)(Timeout|Interval)\b|\bBun\.(sleep|nanoseconds)\b|\bnode:(timers|perf_hooks)|\bAbortSignal\.timeout\b|\bprocess\.(hrtime|uptime)\b/;

const sources = codeOfDaemon().filter(({ path }) => path !== CLOCK);

test("only the clock's file reads the runtime's clocks and sets its timers", () => {
  const uses = new Map(sources.map((source) => [source.path, linesThatMatch(source, RUNTIME)]));
  const files = EXCEPTIONS.map(({ file }) => file);
  const others = [...uses].filter(([path]) => !files.includes(path)).flatMap(([, lines]) => lines);
  expect(others, `use ${CLOCK}`).toEqual([]);
  const unused = files.filter((file) => !uses.get(file)?.length);
  expect(unused, "take these from the list").toEqual([]);
});

test("the clock's file imports nothing, so that every thread can load it", () => {
  const [clock] = codeOf("daemon/core").filter(({ path }) => path === CLOCK) as [Source];
  expect(linesThatMatch(clock, /\bimport\b|\brequire\(/).filter((line) => !line.includes("Imports nothing"))).toEqual(
    [],
  );
});
