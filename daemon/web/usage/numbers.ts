/** The numbers of the usage page: an organization's measures, their units, and values per day. Pure. */
import type { UsageGroup, UsageTotals } from "../../../shared/api/usage.ts";

const HOUR_S = 3600;
export const GIB = 1024 ** 3;
const DAY_MS = 86_400_000;
/** Smaller values are shown as `< 0.001`. */
const LEAST = 0.001;

export interface Measure {
  key: string;
  name: string;
  /** Shown after the number, on the plot's axis and in table heads. */
  unit: string;
  of(totals: UsageTotals): number;
}

export const MEASURES: readonly Measure[] = [
  { key: "sandbox", name: "Sandboxes", unit: "hours", of: (each) => each.sandbox_seconds / HOUR_S },
  { key: "vcpu", name: "Processors", unit: "vCPU hours", of: (each) => each.vcpu_seconds / HOUR_S },
  { key: "memory", name: "Memory", unit: "GiB hours", of: (each) => each.memory_mib_seconds / 1024 / HOUR_S },
  { key: "egress", name: "Outbound traffic", unit: "GiB", of: (each) => each.egress_bytes / GIB },
  { key: "drive", name: "Drives", unit: "GiB hours", of: (each) => each.drive_byte_hours / GIB },
  { key: "builds", name: "Builds of templates", unit: "hours", of: (each) => each.build_seconds / HOUR_S },
  { key: "commands", name: "Commands", unit: "commands", of: (each) => each.exec_count },
  { key: "messages", name: "Messages", unit: "messages", of: (each) => each.messages },
];

/** `1,234`, `12.3`, `0.04`, `< 0.001`: significant digits only. */
export function numberText(value: number): string {
  const size = Math.abs(value);
  if (size > 0 && size < LEAST) return `< ${LEAST}`;
  const digits =
    size < 0.1 ? { maximumSignificantDigits: 2 } : { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : 2 };
  return value.toLocaleString("en", digits);
}

export const isNothing = (totals: UsageTotals): boolean => MEASURES.every(({ of }) => of(totals) === 0);

/** The days (UTC) of a month up to now: `2026-11-24`. */
export function daysOf({ start_at, end_at }: { start_at: string; end_at: string }, asOf: string): string[] {
  const end = Math.min(Date.parse(end_at), Date.parse(asOf) + 1);
  const days: string[] = [];
  for (let at = Date.parse(start_at); at < end; at += DAY_MS) days.push(new Date(at).toISOString().slice(0, 10));
  return days;
}

/** A number for each day; 0 if it has no data. */
export function daily(days: readonly string[], groups: readonly UsageGroup[], { of }: Measure): number[] {
  const known = new Map(groups.map(({ id, totals }) => [id, totals]));
  return days.map((day) => {
    const totals = known.get(day);
    return totals ? of(totals) : 0;
  });
}

/** UNIX seconds at the begin of a day. */
export const dayAt = (day: string): number => Date.parse(`${day}T00:00:00Z`) / 1000;

/** `2026-11`, plus `by` months. */
export function monthBy(month: string, by: number): string {
  const at = new Date(`${month}-01T00:00:00Z`);
  at.setUTCMonth(at.getUTCMonth() + by);
  return at.toISOString().slice(0, 7);
}

export const isMonth = (text: string | null): text is string => text !== null && /^\d{4}-(?:0[1-9]|1[0-2])$/.test(text);

/** `November 2026`. */
export const monthText = (month: string): string =>
  new Date(`${month}-01T00:00:00Z`).toLocaleDateString("en-GB", { month: "long", year: "numeric", timeZone: "UTC" });

/** `24 Nov`. */
export const dayText = (day: string): string =>
  new Date(`${day}T00:00:00Z`).toLocaleDateString("en-GB", { day: "numeric", month: "short", timeZone: "UTC" });

/** A plot's text for screen readers. */
export function inWords(days: readonly string[], values: readonly number[], unit: string): string {
  const sum = values.reduce((all, each) => all + each, 0);
  if (sum === 0) return `No ${unit}`;
  const most = Math.max(...values);
  return `${numberText(sum)} ${unit}, most on ${dayText(days[values.indexOf(most)] ?? "")}: ${numberText(most)}`;
}
