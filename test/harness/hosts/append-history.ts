/**
 * Checks of a history of lists that clients append to and read whole, and of keys that are revoked. Each list is one object that is linearizable:
 * every read is a prefix of the final order, and the order and the reads follow real time. A key is refused a second after its revocation.
 */

/** done: acknowledged; refused: nothing of it was done; unknown: it may take effect at any later moment, or never. */
export type Fate = "done" | "refused" | "unknown";

export interface Append {
  list: string;
  value: string;
  host: string;
  /** The first try began, and the last one was answered. */
  began: number;
  ended: number;
  fate: Fate;
}

export interface Read {
  list: string;
  values: readonly string[];
  host: string;
  began: number;
  ended: number;
}

/** Violations by the appends and reads; `last`: the final values of each list. */
export function wrongLists(
  appends: readonly Append[],
  reads: readonly Read[],
  last: ReadonlyMap<string, readonly string[]>,
): string[] {
  const lists = new Set([...appends, ...reads].map(({ list }) => list));
  return [...lists].flatMap((list) => {
    const isOfList = (each: { list: string }) => each.list === list;
    const order = last.get(list) ?? [];
    const wrong = [
      ...wrongValues(appends.filter(isOfList), order),
      ...wrongReads(appends.filter(isOfList), reads.filter(isOfList), order),
    ];
    return wrong.map((is) => `${list}: ${is}`);
  });
}

function wrongValues(appends: readonly Append[], order: readonly string[]): string[] {
  const places = placesOf(order);
  const known = new Map(appends.map((append) => [append.value, append]));
  const wrong = order.flatMap((value, place) => {
    const append = known.get(value);
    if (places.get(value) !== place) return [`${value} is there twice`];
    if (!append) return [`${value} is there without an append`];
    return append.fate === "refused" ? [`${value} is there, and was refused at ${append.host}`] : [];
  });
  const lost = appends.filter(({ fate, value }) => fate === "done" && !places.has(value));
  // The earliest end of those behind each place: none of them ended before this one began.
  let earliest: Append | null = null;
  const late: string[] = [];
  for (const value of order.toReversed()) {
    const append = known.get(value);
    if (!append) continue;
    if (earliest && earliest.ended < append.began)
      late.push(`${value} stands before ${earliest.value}, which was acknowledged before ${value} was appended`);
    if (append.fate === "done" && (earliest === null || append.ended < earliest.ended)) earliest = append;
  }
  return [...wrong, ...lost.map(({ value, host }) => `${value} was acknowledged by ${host}, and is lost`), ...late];
}

function wrongReads(appends: readonly Append[], reads: readonly Read[], order: readonly string[]): string[] {
  const places = placesOf(order);
  const done = appends.filter(({ fate, value }) => fate === "done" && places.has(value));
  const began = new Map(appends.map((append) => [append.value, append.began]));
  const wrong: string[] = [];
  for (const read of reads) {
    const is = `a read at ${read.host} from ${read.began} to ${read.ended}`;
    const off = read.values.findIndex((value, place) => order[place] !== value);
    if (off >= 0) {
      wrong.push(`${is} has ${read.values[off]} at ${off}, the final order ${order[off] ?? "nothing"}`);
      continue;
    }
    const missed = done.filter(
      ({ value, ended }) => ended < read.began && (places.get(value) ?? 0) >= read.values.length,
    );
    for (const { value } of missed) wrong.push(`${is} lacks ${value}, which was acknowledged before`);
    for (const value of read.values)
      if ((began.get(value) ?? 0) > read.ended) wrong.push(`${is} has ${value}, which was appended later`);
    const longer = reads.find(({ ended, values }) => ended < read.began && values.length > read.values.length);
    if (longer)
      wrong.push(`${is} has ${read.values.length} values, an earlier one at ${longer.host} ${longer.values.length}`);
  }
  return wrong;
}

/** The first place of each value. */
function placesOf(order: readonly string[]): Map<string, number> {
  return new Map(order.map((value, place) => [value, place] as const).toReversed());
}

/** An answer to a call with a key. */
export interface Use {
  key: string;
  host: string;
  began: number;
  ended: number;
  isTaken: boolean;
}

/** A key, and the time `at` of its acknowledged revocation. */
export interface Revocation {
  key: string;
  at: number;
}

/** A time in which hosts could not follow the directory; without a host: all of them. */
export interface Cut {
  host?: string;
  from: number;
  until: number;
}

/** A host refuses a revoked key after this long, outside of cuts. */
const REVOKED_WITHIN_MS = 1_000;

/**
 * Calls that were answered although their key was revoked: later than 1 s after the revocation, outside of cuts, or after the same host had
 * refused the key because of it. Before that, a host may refuse a key that it does not have yet. `healMs`: time that a host may need after
 * a cut until it follows the directory again. `checked`: number of calls with revoked keys that had to be refused.
 */
export function wrongUses(
  uses: readonly Use[],
  revocations: readonly Revocation[],
  cuts: readonly Cut[],
  healMs: number,
): { checked: number; wrong: string[] } {
  let checked = 0;
  const wrong = revocations.flatMap(({ key, at }) => {
    const ofKey = uses.filter((use) => use.key === key);
    return ofKey.flatMap(({ host, began, isTaken }) => {
      const is = `${key} at ${host}, ${Math.round(began - at)} ms after its revocation`;
      const refused = ofKey.filter((use) => use.host === host && !use.isTaken && use.began > at);
      if (isTaken && refused.some(({ ended }) => ended < began)) return [`${is}: taken, and refused before`];
      if (began <= followedBy(host, at, cuts, healMs)) return [];
      checked++;
      return isTaken ? [`${is}: taken`] : [];
    });
  });
  return { checked, wrong };
}

/** When a host has had its second for a revocation: after the cuts that began before. */
function followedBy(host: string, at: number, cuts: readonly Cut[], healMs: number): number {
  let by = at + REVOKED_WITHIN_MS;
  for (const { from, until } of cuts.filter((cut) => (cut.host ?? host) === host).sort((a, b) => a.from - b.from))
    if (from < by) by = Math.max(by, until + healMs + REVOKED_WITHIN_MS);
  return by;
}
