/** Responsibility for recording and metering the end of an execution: every cell of the table, and every path through it. */
import { describe, expect, test } from "vitest";
import {
  type Accounting,
  after,
  DUTIES,
  type Happening,
} from "../../../../daemon/domain/sandboxes/executions/accounting.ts";

const STAGES = Object.keys(DUTIES) as Accounting[];
const HAPPENINGS: Record<Happening, true> = {
  asked: true,
  begun: true,
  found_over: true,
  metered: true,
  unmetered: true,
  answered: true,
  left: true,
  never_begun: true,
  told: true,
};
const ALL = Object.keys(HAPPENINGS) as Happening[];

/** The facts that a stage stands for; null: nothing is known. */
interface Facts {
  waits: boolean;
  runs: boolean;
  metered: boolean;
}
const FACTS: Record<Accounting, Facts | null> = {
  unknown: null,
  awaited: { waits: true, runs: false, metered: false },
  awaited_metered: { waits: true, runs: false, metered: true },
  joined: { waits: true, runs: true, metered: false },
  joined_metered: { waits: true, runs: true, metered: true },
  left: { waits: false, runs: false, metered: false },
  left_metered: { waits: false, runs: false, metered: true },
  running: { waits: false, runs: true, metered: false },
  running_metered: { waits: false, runs: true, metered: true },
};
const stageOf = (facts: Facts | null) =>
  STAGES.find((stage) => JSON.stringify(FACTS[stage]) === JSON.stringify(facts)) as Accounting;

/** The required result, defined without the table. */
function expected(facts: Facts | null, happening: Happening): Facts | null {
  if (facts === null) {
    if (happening === "asked") return { waits: true, runs: false, metered: false };
    if (happening === "begun") return { waits: false, runs: true, metered: false };
    return happening === "found_over" ? { waits: false, runs: false, metered: false } : null;
  }
  const over = { ...facts, waits: false };
  if (happening === "begun") return { ...facts, runs: true };
  if (happening === "metered" || happening === "unmetered") return { ...facts, metered: happening === "metered" };
  if (happening === "told") return facts.waits ? facts : null;
  // A verb may learn that only when its call is over.
  if (happening === "never_begun" && !facts.waits && !facts.runs) return null;
  if (!facts.waits || happening === "asked" || happening === "found_over") return facts;
  // The call that waited is over: nothing is left to do unless the command still runs, or may have started and its end was not reported.
  return facts.runs || happening === "left" ? over : null;
}

describe.each(STAGES)("%s", (stage) => {
  test.each(ALL)("and then: %s", (happening) => {
    expect(after(stage, happening)).toBe(stageOf(expected(FACTS[stage], happening)));
  });

  test("has one recorder and one meter", () => {
    const facts = FACTS[stage];
    const { waits, runs, records, meters } = DUTIES[stage];
    expect({ waits, runs }).toEqual({ waits: facts?.waits ?? false, runs: facts?.runs ?? false });
    expect(records).toBe(facts === null ? null : waits && !runs ? "call" : "end");
    expect(meters).toBe(facts === null || facts.metered ? null : waits ? "call" : "end");
  });
});

/** Actions of a daemon at each step, as in ends.ts and exec.ts. */
interface World {
  stage: Accounting;
  metered: number;
  records: number;
}

function step(world: World, happening: Happening): World {
  const { waits, meters, records } = DUTIES[world.stage];
  const next = { ...world };
  // A record that meters it belongs to another call, which has started it: once, and only while it is not over.
  if (happening === "metered") next.metered += meters === null ? 0 : 1;
  if (happening === "unmetered") next.metered -= world.stage.endsWith("_metered") ? 1 : 0;
  if (happening === "answered" && waits) {
    if (meters === "call") {
      next.metered++;
      next.stage = after(next.stage, "metered");
    }
    if (records === "call") next.records++;
  }
  if (happening === "told" && !waits && world.stage !== "unknown") {
    if (meters === "end") next.metered++;
    if (records === "end") next.records++;
  }
  next.stage = after(next.stage, happening);
  return next;
}

test("in any order of events, it is recorded and metered once before it is forgotten", () => {
  let ways = 0;
  const visit = (world: World, left: number, last: Happening) => {
    if (world.stage === "unknown") {
      ways++;
      // A command that has not started has nothing to record.
      if (last === "never_begun") return expect(world.records).toBe(0);
      expect([world.records, world.metered]).toEqual([1, 1]);
      return;
    }
    if (left === 0) return;
    for (const happening of ALL) {
      const next = step(world, happening);
      // An event that changes nothing opens no new path.
      if (next.stage !== world.stage) visit(next, left - 1, happening);
    }
  };
  for (const first of ["asked", "begun", "found_over"] as const) {
    visit(step({ stage: "unknown", metered: 0, records: 0 }, first), 8, first);
  }
  expect(ways).toBeGreaterThan(300);
});
