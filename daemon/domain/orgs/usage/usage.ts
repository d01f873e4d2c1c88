/** The call that reports an organization's usage. */
import { type Grouping, type UsageGroup, type UsageReport, usage } from "../../../../shared/api/usage.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { type Bound, bind, type Caller, parsed } from "../../../core/call/operation.ts";
import { at, wallMs } from "../../../core/clock.ts";
import { ownerOf } from "../../../core/loop/index.ts";
import type { Reads } from "../../../db/readers/pool.ts";
import type { Standing } from "../quota.ts";
import { readUsage } from "../reads.ts";
import type { Balance } from "./credits.ts";
import type { Meter } from "./meter.ts";
import { monthOf } from "./report.ts";

export interface UsageDeps {
  reads: Reads;
  meter: Meter;
  /** Throws org_not_found, insufficient_scope. */
  findOrg(caller: Caller, orgId: string): OrgId;
  /** The organization's present amounts and the caps of its plan. */
  standing(orgId: OrgId): Promise<Standing & Pick<UsageReport, "guest_cids">>;
  credits(orgId: OrgId): Balance & { warnings: string[] };
  /** Display name of a room, agent, key or day; null if unknown. */
  nameOf(grouping: Grouping, id: string): string | null;
}

export function makeUsage({ reads, meter, findOrg, standing, credits, nameOf }: UsageDeps): Bound {
  return bind(usage, {
    find: (call, params) => findOrg(call.caller, params.org_id ?? ""),
    run: async ({ caller, signal }, { group_by, month }, orgId) => {
      const { can_create, warnings, ...standsAt } = await standing(orgId);
      const { warnings: creditWarnings, ...balance } = credits(orgId);
      const nowMs = wallMs();
      const { start_at, end_at, ...days } = monthOf(month ?? at(nowMs));
      const sums = meter.sums(orgId, days, group_by ?? "day");
      const by = { owner: ownerOf(orgId), signal };
      const { totals, groups, others } = parsed(await reads.read(readUsage, { sums, group_by: group_by ?? null }, by));
      const named = (group: UsageGroup) => ({
        ...group,
        name: group_by === undefined || group.id === null ? null : nameOf(group_by, group.id),
      });
      return {
        outcome: "ok",
        body: {
          org_id: orgId,
          plan: caller.plan,
          ...standsAt,
          period: { start_at, end_at },
          credits: balance,
          can_create: { ...can_create, sandbox: can_create.sandbox && balance.remaining !== 0 },
          warnings: [...warnings, ...creditWarnings],
          totals,
          ...(groups && { groups: groups.map(named), others: others ?? null }),
          as_of: at(nowMs),
        },
      };
    },
  });
}
