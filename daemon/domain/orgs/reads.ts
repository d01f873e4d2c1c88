/** Reads of organizations in reader threads. */
import type { Grouping, UsageReport } from "../../../shared/api/usage.ts";
import type { Read } from "../../db/readers/read.ts";
import { groupsOf, totalsOf } from "./usage/report.ts";
import { type SumsInput, sumsOf } from "./usage/sums.ts";

/** Usage without the names of its groups; groups only if requested. */
export const readUsage: Read<
  { sums: SumsInput; group_by: Grouping | null },
  Pick<UsageReport, "totals" | "groups" | "others">
> = {
  name: "orgs.usage",
  isOfRecords: false,
  *run(queries, { sums, group_by }) {
    const amounts = yield* sumsOf(queries, sums);
    const totals = totalsOf(amounts.values());
    yield JSON.stringify({ totals, ...(group_by === null ? {} : groupsOf(group_by, amounts)) });
  },
};

export const orgReads = [readUsage];
