/** Rates between two usage responses: shares of processors, and bytes and requests per second. */
import type { Top, TopItem } from "../../../../shared/api/overview/top.ts";

/** Null: no rate is known, either not yet or no longer. */
export interface TopRates {
  items: readonly (TopItem & { rates: ItemRates })[];
  not_shown: number;
  host: (NonNullable<Top["host"]> & { rates: HostRates }) | null;
  at: string;
  /** Between the two answers. */
  interval_seconds: number;
}

interface ItemRates {
  /** Percent of one processor: a sandbox with two can reach 200. */
  cpu_percent: number | null;
  sent_bytes_per_second: number | null;
  received_bytes_per_second: number | null;
}

interface HostRates {
  /** Of all processors together. */
  cpu_percent: number | null;
  requests_per_second: number | null;
  /** Load of the service's event loop, in total and by owner. */
  loop_percent: number | null;
  loop_owners: { owner: string; percent: number }[];
}

export function ratesOf(before: Top | null, now: Top): TopRates {
  const seconds = before === null ? 0 : (Date.parse(now.at) - Date.parse(before.at)) / 1000;
  const known = new Map(before?.items.map((item) => [item.sandbox_id, item]));
  const perSecond = (was: number | null | undefined, is: number | null) => {
    if (was === null || was === undefined || is === null || seconds <= 0 || is < was) return null;
    return (is - was) / seconds;
  };
  const items = now.items.map((item) => {
    const was = known.get(item.sandbox_id);
    const rates = {
      cpu_percent: percent(perSecond(was?.cpu.used_seconds, item.cpu.used_seconds)),
      sent_bytes_per_second: perSecond(was?.egress.sent_bytes, item.egress.sent_bytes),
      received_bytes_per_second: perSecond(was?.egress.received_bytes, item.egress.received_bytes),
    };
    return { ...item, rates };
  });
  const { host } = now;
  const was = before?.host;
  const busy = host && perSecond(was?.cpu.busy_seconds, host.cpu.busy_seconds);
  const idle = host && perSecond(was?.cpu.idle_seconds, host.cpu.idle_seconds);
  const hostRates = host && {
    ...host,
    rates: {
      cpu_percent: busy === null || idle === null || busy + idle === 0 ? null : percent(busy / (busy + idle)),
      requests_per_second: perSecond(was?.requests, host.requests),
      loop_percent: percent(perSecond(was?.loop.busy_seconds, host.loop.busy_seconds)),
      loop_owners: loopOwners(was?.loop.owners ?? [], host.loop.owners, perSecond),
    },
  };
  return { items, not_shown: now.not_shown, host: hostRates, at: now.at, interval_seconds: seconds };
}

type PerSecond = (was: number | null | undefined, is: number | null) => number | null;
type Owners = NonNullable<Top["host"]>["loop"]["owners"];

/** The owners with any share, the largest first. */
function loopOwners(before: Owners, now: Owners, perSecond: PerSecond) {
  const known = new Map(before.map(({ owner, busy_seconds }) => [owner, busy_seconds]));
  return now
    .map(({ owner, busy_seconds }) => ({ owner, percent: percent(perSecond(known.get(owner), busy_seconds)) ?? 0 }))
    .filter((each) => each.percent > 0)
    .toSorted((a, b) => b.percent - a.percent);
}

const percent = (share: number | null) => (share === null ? null : Math.round(share * 1000) / 10);
