/** Long turns of a test daemon's event loop, as it recorded them, and those of them that fail a test file. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { join, relative, resolve } from "node:path";
import { type RecordedTurn, STACKS_VARIABLE, TURNS_VARIABLE } from "../../../daemon/core/loop/turn-record.ts";
import LISTED from "./long-turns.json";
import { slowness } from "./slowness.ts";

export type { RecordedTurn } from "../../../daemon/core/loop/turn-record.ts";

/** The check runs other rings on the same cores and caches, also on hosts of half the speed: times may be five times as long there. */
export const ALLOWANCE = process.env.ROOMD_TEST_LONG === "1" ? 1 : 5;
/** No turn may take more of the thread's processor time. */
export const MAX_TURN_MS = 20 * ALLOWANCE;
/** A start ends with work in the turn that opens the doors, which delays no client yet. */
const START_MS = 250;

const ROOT = resolve(import.meta.dirname, "../../..");
const NAME = /^turns-\d+\.jsonl$/;

/** The test file that forbids long turns to its daemons; null if the rule is not enforced. */
let held: string | null = null;
let mostMs = MAX_TURN_MS;

/** From now on daemons that stop with a long turn fail this test file, except for turns that are listed for it. */
export function holdTurns(testFile: string, most = MAX_TURN_MS): void {
  mostMs = most;
  held = relative(ROOT, testFile);
}

/** Variables of a daemon's next start; with ROOMD_TEST_TURN_STACKS=1 of the tests' own environment its record has stacks. */
export function turnsEnvironment(home: string): Record<string, string> {
  if (held === null) return {};
  const stacks = process.env[STACKS_VARIABLE];
  return {
    [TURNS_VARIABLE]: join(home, `turns-${recordsIn(home).length}.jsonl`),
    ...(stacks === undefined ? {} : { [STACKS_VARIABLE]: stacks }),
  };
}

const recordsIn = (home: string) => readdirSync(home).filter((name) => NAME.test(name));

/** Turns of over 5 ms of all starts of a daemon; a line truncated by its end is left out. */
export function turnsOf(home: string): RecordedTurn[] {
  if (!existsSync(home)) return [];
  return recordsIn(home).flatMap((name) =>
    readFileSync(join(home, name), "utf8")
      .split("\n")
      .slice(0, -1)
      .map((line) => JSON.parse(line) as RecordedTurn),
  );
}

/**
 * The daemon's turns that took too long, even allowing for this host's present slowness, except those listed for the test file; none if the
 * rule is not enforced for that file.
 */
export function longTurns(home: string): RecordedTurn[] {
  const file = held;
  if (file === null) return [];
  const listed: Record<string, { label: string }[]> = LISTED;
  const labels = new Set((listed[file] ?? []).map(({ label }) => label));
  const long = turnsOf(home).filter(
    ({ label, cpu_ms, at_ms }) => cpu_ms > mostMs && at_ms > START_MS && !labels.has(label),
  );
  if (long.length === 0) return [];
  const most = mostMs * slowness();
  return long.filter(({ cpu_ms }) => cpu_ms > most);
}
