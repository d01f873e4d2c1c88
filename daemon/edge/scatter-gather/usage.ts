/**
 * Sums an organization's usage over all hosts. Rooms, sandboxes, their memory and disks, and credits are known on every host for the whole
 * cluster; drives, templates and metered usage are known per host.
 */
import {
  type Grouping,
  MAX_GROUPS,
  type UsageGroup,
  type UsageReport,
  type UsageTotals,
  type usage,
} from "../../../shared/api/usage.ts";
import type { Merging } from "./rule.ts";
import { warningsOf } from "./words.ts";

export const usageOfAll: Merging<typeof usage> = {
  patienceMs: 1000,
  merge: ({ body: own }, others, { input, silent }) => {
    const all = [own, ...others.map(({ body }) => body)];
    const added = (of: (report: UsageReport) => number) => all.reduce((sum, report) => sum + of(report), 0);
    return {
      ...own,
      template_mib: { ...own.template_mib, used: added(({ template_mib }) => template_mib.used) },
      drive: { ...own.drive, used_bytes: added(({ drive }) => drive.used_bytes) },
      guest_cids: {
        in_use: added(({ guest_cids }) => guest_cids.in_use),
        total: added(({ guest_cids }) => guest_cids.total),
      },
      totals: sumOf(all.map(({ totals }) => totals)),
      ...(input.group_by === undefined ? {} : groupsOf(input.group_by, all)),
      warnings: [
        ...new Set(all.flatMap(({ warnings }) => warnings)),
        ...warningsOf(silent, "usage on it is not counted."),
      ],
    };
  },
};

function sumOf(parts: readonly UsageTotals[]): UsageTotals {
  const [first, ...others] = parts;
  if (!first) throw new Error("nothing to add up");
  const sum = { ...first };
  for (const part of others) {
    for (const name of Object.keys(sum) as (keyof UsageTotals)[]) sum[name] += part[name];
  }
  // Seconds have millisecond resolution.
  for (const name of Object.keys(sum) as (keyof UsageTotals)[]) sum[name] = Math.round(sum[name] * 1000) / 1000;
  return sum;
}

/** The largest groups of all, and the sum of the others: together they are the totals. */
function groupsOf(by: Grouping, all: readonly UsageReport[]): Pick<UsageReport, "groups" | "others"> {
  const byId = new Map<string | null, UsageGroup>();
  for (const group of all.flatMap(({ groups = [] }) => groups)) {
    const known = byId.get(group.id);
    const totals = known ? sumOf([known.totals, group.totals]) : group.totals;
    byId.set(group.id, { id: group.id, name: known?.name ?? group.name, totals });
  }
  const sorted = [...byId.values()].sort((a, b) =>
    by === "day" ? ((a.id ?? "") < (b.id ?? "") ? -1 : 1) : b.totals.sandbox_seconds - a.totals.sandbox_seconds,
  );
  const left = sorted.slice(MAX_GROUPS);
  const rests = all.flatMap(({ others }) => others ?? []);
  const totals = [...left.map((group) => group.totals), ...rests.map((rest) => rest.totals)];
  const group_count = left.length + rests.reduce((sum, rest) => sum + rest.group_count, 0);
  return {
    groups: sorted.slice(0, MAX_GROUPS),
    others: totals.length === 0 ? null : { group_count, totals: sumOf(totals) },
  };
}
