/** Breadth-first search of the model of a room's move: every state within a budget, the first that breaks an invariant, and the states without an end. */
import { stepsFrom } from "./move-model.ts";
import { HOSTS, RULES, type Rules } from "./move-rules.ts";
import { answers, type Budget, isKept, type State, startState } from "./move-state.ts";

type Rule = Exclude<keyof Rules, "order">;

/** A call of a rule that the search made: a situation that the code is compared in. */
export interface Situation {
  rule: Rule;
  given: unknown[];
  result: unknown;
}

export interface Found {
  states: number;
  steps: number;
  /** The first problem, and the steps that lead to it; null: none. */
  problem: { is: string; trace: string[] } | null;
  situations: Situation[];
}

/** Explores all states. Stops at the first problem. */
export function search(budget: Budget, changed: Partial<Rules> = {}): Found {
  const situations = new Map<string, Situation>();
  const rules = noted({ ...RULES, ...changed }, situations);
  const start = startState(budget);
  const numbers = new Map([[JSON.stringify(start), 0]]);
  const came: { from: number; by: string }[] = [{ from: -1, by: "" }];
  const back: number[][] = [[]];
  const ends: number[] = [];
  let steps = 0;
  const traceTo = (at: number): string[] => {
    const { from, by } = came[at] ?? { from: -1, by: "" };
    return from < 0 ? [] : [...traceTo(from), by];
  };
  const found = (problem: Found["problem"]) => ({
    ...{ states: numbers.size, steps, problem, situations: [...situations.values()] },
  });
  for (let queue = [{ state: start, at: 0 }]; queue.length > 0; ) {
    const next: typeof queue = [];
    for (const { state, at } of queue) {
      const is = brokenBy(state, budget, rules);
      if (is !== null) return found({ is, trace: traceTo(at) });
      if (isEnd(state, rules)) ends.push(at);
      for (const { name, host, isChoice, to } of stepsFrom(state, rules)) {
        steps++;
        const key = JSON.stringify(to);
        let number = numbers.get(key);
        if (number === undefined) {
          number = numbers.size;
          numbers.set(key, number);
          came.push({ from: at, by: `${host} ${name}` });
          back.push([]);
          next.push({ state: to, at: number });
        }
        if (!isChoice) back[number]?.push(at);
      }
    }
    queue = next;
  }
  const endless = withoutEnd(back, ends);
  return found(endless === null ? null : { is: "no end can be reached", trace: traceTo(endless) });
}

/** The first state from which no end is reached by steps other than faults; null: none. */
function withoutEnd(back: readonly (readonly number[])[], ends: readonly number[]): number | null {
  const reaches = new Set(ends);
  const queue = [...ends];
  for (let at = queue.pop(); at !== undefined; at = queue.pop()) {
    for (const from of back[at] ?? []) {
      if (reaches.has(from)) continue;
      reaches.add(from);
      queue.push(from);
    }
  }
  const endless = back.findIndex((_, at) => !reaches.has(at));
  return endless < 0 ? null : endless;
}

function brokenBy(state: State, { forgets, removals }: Budget, rules: Rules): string | null {
  const { hosts, directory, hasEnded, isLost } = state;
  const members = HOSTS.filter((host) => directory.gone !== host);
  const [first, second] = HOSTS.filter((host) => answers(state, host, rules, false));
  if (first && second && hosts[first].row?.epoch === hosts[second].row?.epoch) return "two hosts answer in one epoch";
  // A directory that lost the removal of a host has both its rooms and their returned copies, until hosts write the removal again.
  if (forgets > 0 && removals > 0) return null;
  const answering = members.filter((host) => answers(state, host, rules, false));
  if (hasEnded && answering.length > 0) return "a room that has ended answers";
  if (hasEnded || isLost) return null;
  if (answering.length > 1) return "two members answer";
  if (answering.some((host) => !hosts[host].isFresh)) return "an acknowledged write is lost";
  return isKept(state) ? null : "the room is lost";
}

/** Nothing is under way, and the directory places the room on the member that answers, or nowhere. */
function isEnd(state: State, rules: Rules): boolean {
  const { hosts, directory } = state;
  const isIdle = HOSTS.every((name) => {
    const { isUp, row, reading, arriving, leaving, settling, taking, copy } = hosts[name];
    if (directory.gone === name) return true;
    const isCurrent = JSON.stringify(copy.owner) === JSON.stringify(directory.owner);
    const isMoving = row?.state === "active" && row.move !== null;
    return isUp && isCurrent && !(isMoving || reading || arriving || leaving || settling || taking);
  });
  if (!isIdle) return false;
  const answering = HOSTS.filter((host) => directory.gone !== host && answers(state, host, rules, true));
  return (
    answering.length === (directory.owner === null ? 0 : 1) &&
    (directory.owner?.host ?? null) === (answering[0] ?? null)
  );
}

/** The rules, which note each situation, and decide it once. */
function noted(rules: Rules, situations: Map<string, Situation>): Rules {
  const names = Object.keys(rules).filter((name): name is Rule => name !== "order");
  const wrapped = names.map((rule) => [
    rule,
    (...given: unknown[]) => {
      const key = `${rule} ${JSON.stringify(given)}`;
      const known = situations.get(key);
      if (known) return known.result;
      const result = (rules[rule] as (...given: unknown[]) => unknown)(...given);
      situations.set(key, { rule, given, result });
      return result;
    },
  ]);
  return { ...rules, ...Object.fromEntries(wrapped) };
}
