/**
 * The move of a room between two hosts, in every order of its steps with crashes, a directory that is rolled back and hosts that are
 * removed by force: an exhaustive search of a model. Its rules are compared with the code in every situation that the search has reached.
 */
import { describe, expect, test } from "vitest";
import { shortOrLong } from "../../../../harness/guests.ts";
import { type Order, RULES, type Rules } from "./move-rules.ts";
import { type Found, type Situation, search } from "./move-search.ts";
import type { Budget } from "./move-state.ts";
import { orderOfDeparture, REAL } from "./real-rules.ts";

const budget = (moves: number, forgets: number, removals: number, crashes: number): Budget => ({
  ...{ moves, forgets, removals, crashes },
});
const ONCE = budget(1, 0, 1, 1);
const SET_BACK = budget(2, 1, 0, 1);
const TWICE = budget(2, 0, 0, 1);
const ALL = budget(1, 1, 1, 0);
const LONG = [budget(2, 0, 1, 1), budget(2, 1, 1, 0), budget(1, 2, 0, 2), budget(1, 2, 1, 0)];
const BUDGETS = [
  TWICE,
  ONCE,
  SET_BACK,
  ALL,
  ...LONG.slice(0, shortOrLong("wider searches of the move", 0, LONG.length)),
];

const found = new Map<Budget, Found>();
const searched = (of: Budget): Found => {
  const result = found.get(of) ?? search(of);
  found.set(of, result);
  return result;
};

test.each(BUDGETS)(
  "moves $moves, set back $forgets, removals $removals, crashes $crashes: no state breaks an invariant, each reaches an end",
  { timeout: 240_000 },
  (of) => {
    const { states, steps, problem } = searched(of);
    console.log(`${JSON.stringify(of)}: ${states} states, ${steps} steps`);
    expect(problem).toBeNull();
    expect(states).toBeGreaterThan(10_000);
  },
);

const order = (...steps: Order[number][]): Partial<Rules> => ({ order: steps });
/** Rules that are wrong, and the invariant that each breaks. */
const WRONG: [string, Partial<Rules>, Budget, string][] = [
  ["lets go once it has claimed", order("note", "send", "intend", "claim", "retire"), ONCE, "the room is lost"],
  [
    "does not note that it claims",
    order("note", "send", "claim", "ask", "retire"),
    TWICE,
    "a room that has ended answers",
  ],
  [
    "claims before the file is there",
    order("note", "intend", "claim", "send", "ask", "retire"),
    ONCE,
    "the room is lost",
  ],
  ["releases the room for any reply of the other host", { isThere: () => true }, SET_BACK, "the room is lost"],
  ["settles without a query to the other host", { asks: () => false }, SET_BACK, "the room is lost"],
  ["deletes files that another host may still claim", { refuse: (owner) => owner }, ONCE, "the room is lost"],
  ["resumes a room of another host", { isOurs: () => true }, TWICE, "two members answer"],
  [
    "resumes a room that has ended",
    { hasCome: ({ state }) => state === "active" },
    TWICE,
    "a room that has ended answers",
  ],
  [
    "comes back in its former epoch",
    withSettle((known) => ({ ...RULES.settle(known), epoch: known.rowEpoch })),
    SET_BACK,
    "the room is lost",
  ],
  [
    "comes back though the room has ended",
    withSettle((known) => RULES.settle({ ...known, freedBy: "removal" })),
    ONCE,
    "a room that has ended answers",
  ],
  [
    "takes its own removal for the end of its rooms",
    { freed: (by, host) => (by === host ? host : "removal") },
    ONCE,
    "the room is lost",
  ],
  [
    "lists a room that may be another host's",
    { say: (live, ...rest) => RULES.say(live && { ...live, isClaiming: false }, ...rest) },
    ONCE,
    "a room that has ended answers",
  ],
  [
    "frees the name of a room that comes",
    { say: (live, owner, host) => RULES.say(live, owner, host, false) },
    ONCE,
    "the room is lost",
  ],
  [
    "follows a directory that was set back",
    // Each of the two hides the absence of the other.
    {
      merge: (_, { owner, gone }) => ({ owner, gone }),
      ...withSettle((known) =>
        RULES.settle({ ...known, rowEpoch: Math.min(known.rowEpoch, known.owner?.epoch ?? known.rowEpoch) }),
      ),
    },
    SET_BACK,
    "the room is lost",
  ],
  ["keeps the placement of a host that is gone", { merge: keptByEpoch }, ALL, "no end can be reached"],
  [
    "claims without comparing epochs",
    { claim: (owner, _, __, to) => owner && { host: to, epoch: owner.epoch + 1, contestedBy: null } },
    ONCE,
    "the room is lost",
  ],
];

function withSettle(settle: Rules["settle"]): Partial<Rules> {
  return { settle };
}

function keptByEpoch(...[copy, directory]: Parameters<Rules["merge"]>): ReturnType<Rules["merge"]> {
  const isLost = copy.owner && directory.owner && copy.owner.epoch > directory.owner.epoch;
  return { owner: isLost ? copy.owner : directory.owner, gone: directory.gone ?? copy.gone };
}

test.each(WRONG)("a host that %s is detected", (_, rules, of, is) => {
  const { problem } = search(of, rules);
  expect(problem?.is, problem?.trace.join("\n")).toBe(is);
});

describe("the rules match the code", () => {
  const situations = (): Map<string, Situation> =>
    new Map(
      BUDGETS.flatMap((of) => searched(of).situations).map((each) => [JSON.stringify([each.rule, each.given]), each]),
    );

  test.each(Object.keys(REAL) as (keyof typeof REAL)[])("%s", async (rule) => {
    const met = [...situations().values()].filter((each) => each.rule === rule);
    console.log(`${rule}: ${met.length} situations`);
    expect(met.length).toBeGreaterThan(1);
    const real = REAL[rule] as (...given: unknown[]) => Promise<unknown>;
    for (const { given, result } of met) {
      expect({ given, result: await real(...given) }).toEqual({ given, result });
    }
  });

  test("a host that leaves: the order of its steps", async () => {
    expect(await orderOfDeparture()).toEqual(["noted: send", "claiming: claim", "claiming: ask", "retired: done"]);
    expect(RULES.order).toEqual(["note", "send", "intend", "claim", "ask", "retire"]);
  });
});
