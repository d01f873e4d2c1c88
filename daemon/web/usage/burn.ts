/** Consumption of credits: the balance at each day's end, the rate, and when they run out. Pure. */
import type { LedgerEntry } from "../../../shared/api/people/credits.ts";
import { dayText, numberText } from "./numbers.ts";

const DAY_MS = 86_400_000;
/** Days from which the rate is computed. */
const PACE_DAYS = 7;
/** A later end is not shown: it is too uncertain. */
const FARTHEST_DAYS = 3650;

export interface Credits {
  granted: number | null;
  used: number;
  entries: readonly LedgerEntry[];
  /** Whether `entries` has all entries of the ledger. */
  isAll: boolean;
}

const dayOf = (at: string) => at.slice(0, 10);

/** Spending that is in no entry yet. */
function unsettled({ used, entries, isAll }: Credits): number {
  const spent = entries.reduce((sum, { kind, amount }) => (kind === "spend" ? sum - amount : sum), 0);
  return isAll ? Math.max(0, used - spent) : 0;
}

/** The balance at the end of each of these days; of the last one, now. */
export function leftAt(credits: Credits, days: readonly string[], asOf: string): number[] {
  const { granted, used, entries } = credits;
  const today = dayOf(asOf);
  const now = (granted ?? 0) - used;
  return days.map((day) => {
    const later = entries.filter(({ at }) => dayOf(at) > day).reduce((sum, { amount }) => sum + amount, 0);
    return now - later + (day < today ? unsettled(credits) : 0);
  });
}

/** Credits used per day, averaged over the last seven days. */
export function paceOf(credits: Credits, asOf: string): number {
  const today = Date.parse(`${dayOf(asOf)}T00:00:00Z`);
  const from = today - (PACE_DAYS - 1) * DAY_MS;
  const first = new Date(from).toISOString().slice(0, 10);
  const spent = credits.entries
    .filter(({ kind, at }) => kind === "spend" && dayOf(at) >= first)
    .reduce((sum, { amount }) => sum - amount, unsettled(credits));
  return (spent * DAY_MS) / Math.max(DAY_MS, Date.parse(asOf) - from);
}

/** Time at which the balance is 0 at this rate, in milliseconds; null: never, as far as it can be predicted. */
export function endsAt(left: number, pace: number, asOf: string): number | null {
  if (left <= 0) return Date.parse(asOf);
  const days = left / pace;
  return pace > 0 && days <= FARTHEST_DAYS ? Date.parse(asOf) + days * DAY_MS : null;
}

export function endInWords(credits: Credits, asOf: string): string {
  const { granted, used } = credits;
  if (granted === null) return "There is no limit: credits do not run out.";
  const left = granted - used;
  if (left <= 0) return "The credits are used up: no sandbox is created or resumed until more are granted.";
  const pace = paceOf(credits, asOf);
  if (pace <= 0) return "Nothing was spent in the last 7 days: at this pace they do not run out.";
  const at = `At the pace of the last 7 days, ${numberText(pace)} credits a day,`;
  const end = endsAt(left, pace, asOf);
  if (end === null) return `${at} they last for more than ten years.`;
  const day = new Date(end).toISOString().slice(0, 10);
  const days = Math.floor((end - Date.parse(asOf)) / DAY_MS);
  const inDays = days === 0 ? "in less than a day" : days === 1 ? "in a day" : `in ${days} days`;
  const year = day.slice(0, 4) === asOf.slice(0, 4) ? "" : ` ${day.slice(0, 4)}`;
  return `${at} they run out on ${dayText(day)}${year}, ${inDays}.`;
}

/** The projected balance, from the last known day on; null on days without one. */
export function ahead(left: number, pace: number, asOf: string, days: readonly string[]): (number | null)[] {
  const today = dayOf(asOf);
  return days.map((day) => {
    if (day < today) return null;
    if (day === today) return left;
    const rest = left - (pace * (Date.parse(`${day}T23:59:59Z`) - Date.parse(asOf))) / DAY_MS;
    return Math.max(0, rest);
  });
}
