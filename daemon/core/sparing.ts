/** Owns looking at what may take long to look at, and is asked for by whoever likes: so seldom that nobody is held up. */
import { monotonicMs } from "./clock.ts";

/** What is so short is looked at each time. */
const SHORT_MS = 5;
/** So many looks in a row were longer, before any is spared: the first ones are, and any may be beside other work. */
const LONG_IN_A_ROW = 3;
/** Of the time, at most this part goes by with looking, while an answer is not too old by then. */
const SHARE = 1 / 100;
/** No answer is older, however long a look takes. */
const OLDEST_MS = 5_000;

/** Makes what says what `look` finds, and, where looks take long, what the last one found a while ago. */
export function sparingly<T>(look: () => T): () => T {
  const took: number[] = [];
  let found: { value: T; until: number } | null = null;
  return () => {
    const begun = monotonicMs();
    if (found && begun < found.until) return found.value;
    const value = look();
    const ended = monotonicMs();
    took.push(ended - begun);
    if (took.length > LONG_IN_A_ROW) took.shift();
    const shortest = Math.min(...took);
    const isLong = took.length === LONG_IN_A_ROW && shortest >= SHORT_MS;
    found = isLong ? { value, until: ended + Math.min(shortest / SHARE, OLDEST_MS) } : null;
    return value;
  };
}
