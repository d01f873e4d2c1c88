/** Usage reports: month, totals and groups. Pure. */
import { type Grouping, MAX_GROUPS, type UsageGroup, type UsageTotals } from "../../../../shared/api/usage.ts";
import { type Amounts, add, NOTHING } from "./amounts.ts";

export interface Month {
  start_at: string;
  end_at: string;
  /** Its days, both included. */
  from: string;
  to: string;
}

/** The month of a day, or of a text such as 2026-01. */
export function monthOf(day: string): Month {
  const [year = 0, month = 1] = day.split("-").map(Number);
  const start = Date.UTC(year, month - 1);
  const end = Date.UTC(year, month);
  const dayOf = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  return {
    start_at: new Date(start).toISOString(),
    end_at: new Date(end).toISOString(),
    from: dayOf(start),
    to: dayOf(end - 1),
  };
}

export function totalsOf(amounts: Iterable<Amounts>): UsageTotals {
  const sum = { ...NOTHING };
  for (const each of amounts) add(sum, each);
  const { sandbox_ms, vcpu_ms, memory_mib_ms, build_ms, ...counts } = sum;
  return {
    sandbox_seconds: sandbox_ms / 1000,
    vcpu_seconds: vcpu_ms / 1000,
    memory_mib_seconds: memory_mib_ms / 1000,
    ...counts,
    build_seconds: build_ms / 1000,
  };
}

/** The largest groups, without their names, and the total of all others: together they are the totals. */
export function groupsOf(by: Grouping, amounts: ReadonlyMap<string, Amounts>) {
  const sorted = [...amounts].sort(([id, one], [otherId, other]) =>
    by === "day" ? (id < otherId ? -1 : 1) : other.sandbox_ms - one.sandbox_ms,
  );
  const shown = sorted.slice(0, MAX_GROUPS);
  const others = sorted.slice(MAX_GROUPS).map(([, each]) => each);
  return {
    groups: shown.map(([id, each]): UsageGroup => {
      return { id: id || null, name: null, totals: totalsOf([each]) };
    }),
    others: others.length === 0 ? null : { group_count: others.length, totals: totalsOf(others) },
  };
}
