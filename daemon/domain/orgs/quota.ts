/**
 * Quotas of an organization: its consumption against the caps of its plan. Above a soft cap the response warns, and the crossing is
 * recorded once; above a hard cap nothing is added. A cap never ends existing things.
 */
import type { OrgId } from "../../../shared/ids.ts";
import type { KeyCall } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import type { Caps, PlanCaps, Plans } from "./plans.ts";
import { getOrg, knownOrg } from "./store.ts";
import type { OrgRow } from "./table.ts";

/** Quantities that are counted from rows. */
export type CountedQuantity = "rooms" | "sandboxes" | "memory_mib" | "disk_gib";

/** The same, and quantities measured on disk. */
type HeldQuantity = CountedQuantity | "template_mib";

export interface QuotaDeps {
  queries: Queries;
  plans: Plans;
  /** The organization's present amounts, on all hosts together; also within a transaction. */
  held(queries: Queries, orgId: OrgId): Record<CountedQuantity, number>;
  /** Total size of its rooms' drives. */
  driveUsed(orgId: OrgId): Promise<number>;
  /** Disk space of its own templates. */
  templateMib(orgId: OrgId): Promise<number>;
}

/** An organization's amounts and their caps. */
export interface Standing {
  /** Whether its plan permits any use at all. */
  entitled: boolean;
  rooms: { active: number } & Caps;
  sandboxes: { active: number } & Caps;
  memory_mib: { allocated: number } & Caps;
  disk_gib: { allocated: number } & Caps;
  template_mib: { used: number } & Caps;
  drive: { used_bytes: number } & PlanCaps["drive"];
  can_create: { room: boolean; sandbox: boolean };
  warnings: string[];
}

export interface Quota {
  capsOf(orgId: OrgId): PlanCaps;
  /**
   * Within the transaction that has just added this: throws if a hard cap is exceeded, which rolls it back; else returns a warning for each
   * exceeded soft cap. Throws quota_exceeded.
   */
  admit(queries: Queries, call: KeyCall, added: Partial<Record<CountedQuantity, number>>): string[];
  /** The same for additions without a call: only refuses. Throws quota_exceeded. */
  require(queries: Queries, orgId: OrgId, added: Partial<Record<CountedQuantity, number>>): void;
  /**
   * Within a transaction: before a template build, with guests that use `memoryMib` in addition to the sandboxes. Throws quota_exceeded.
   */
  requireBuild(queries: Queries, orgId: OrgId, memoryMib: number): void;
  standing(orgId: OrgId): Promise<Standing>;
}

function capsIn(plans: Plans, org: OrgRow | undefined): PlanCaps {
  if (!org) throw new Error("there is no such organization");
  return plans[org.plan];
}

/** Returns the caps of an organization's plan. */
export const makeCaps =
  (queries: Queries, plans: Plans) =>
  (orgId: OrgId): PlanCaps =>
    capsIn(plans, knownOrg(queries, orgId));

export function makeQuota({ queries, plans, held, driveUsed, templateMib }: QuotaDeps): Quota {
  const capsOf = makeCaps(queries, plans);
  /** The organization's present amounts and caps, for the amounts that were added. */
  const required = (within: Queries, orgId: OrgId, added: Partial<Record<CountedQuantity, number>>) => {
    const org = getOrg(within, orgId);
    // The organization's keys have just ended, including the caller's.
    if (org && org.ending_at !== null) throw new ServiceError("invalid_api_key");
    const caps = capsIn(plans, org);
    const has = held(within, orgId);
    const counts = (Object.entries(added) as [CountedQuantity, number][]).filter(([, count]) => count > 0);
    for (const [quantity, count] of counts) {
      if (has[quantity] > caps[quantity].hard_cap)
        throw exceeded(quantity, has[quantity] - count, caps[quantity].hard_cap);
    }
    return { caps, has, counts };
  };
  return {
    capsOf,
    require: required,

    admit: (within, call, added) => {
      const { caps, has, counts } = required(within, call.caller.org_id, added);
      const over = counts.filter(([quantity]) => has[quantity] > caps[quantity].soft_cap);
      for (const [quantity, count] of over) {
        const { soft_cap } = caps[quantity];
        if (has[quantity] - count <= soft_cap)
          recordSoft(within, call, { limit: quantity, used: has[quantity], cap: soft_cap });
      }
      return over.map(([quantity]) => softWarning(quantity, has[quantity], caps[quantity]));
    },

    requireBuild: (within, orgId, memoryMib) => {
      const { hard_cap: cap } = capsIn(plans, getOrg(within, orgId)).memory_mib;
      const { memory_mib: used } = held(within, orgId);
      if (used + memoryMib <= cap) return;
      throw new ServiceError("quota_exceeded", {
        detail: `The build needs ${memoryMib} MiB of memory in addition to the ${used} MiB of sandboxes; the organization's plan allows ${cap}.`,
        details: { limit: "memory_mib", used, cap },
        hint: `Set a smaller min_memory_mib, destroy a sandbox, ${ASK_OPERATOR}.`,
      });
    },

    standing: async (orgId) => {
      const caps = capsOf(orgId);
      const { rooms, sandboxes, memory_mib, disk_gib, template_mib, drive } = caps;
      const [used_bytes, used] = await Promise.all([driveUsed(orgId), templateMib(orgId)]);
      const has = { ...held(queries, orgId), template_mib: used };
      const over = (Object.keys(NOUNS) as HeldQuantity[]).filter((quantity) => has[quantity] > caps[quantity].soft_cap);
      return {
        entitled: rooms.hard_cap > 0 && sandboxes.hard_cap > 0,
        rooms: { active: has.rooms, ...rooms },
        sandboxes: { active: has.sandboxes, ...sandboxes },
        memory_mib: { allocated: has.memory_mib, ...memory_mib },
        disk_gib: { allocated: has.disk_gib, ...disk_gib },
        template_mib: { used, ...template_mib },
        drive: { used_bytes, ...drive },
        can_create: {
          room: has.rooms < rooms.hard_cap,
          sandbox:
            has.sandboxes < sandboxes.hard_cap &&
            has.memory_mib < memory_mib.hard_cap &&
            has.disk_gib < disk_gib.hard_cap,
        },
        warnings: [
          ...over.map((quantity) => softWarning(quantity, has[quantity], caps[quantity])),
          ...(used_bytes > drive.soft_cap_bytes ? [driveWarning(used_bytes, drive)] : []),
        ],
      };
    },
  };
}

/** Records that a call has exceeded a soft cap. Within its transaction. */
function recordSoft(queries: Queries, call: KeyCall, details: { limit: string; used: number; cap: number }): void {
  const { caller, source, request_id, ip, audit } = call;
  appendAudit(queries, {
    ...audit,
    event: "quota.soft_exceeded",
    outcome: "success",
    at: now(),
    org_id: caller.org_id,
    actor: { type: caller.kind ?? "key", id: caller.key_id, name: caller.name },
    source,
    request_id,
    ip,
    details,
  });
}

const NOUNS: Record<HeldQuantity, string> = {
  rooms: "rooms",
  sandboxes: "sandboxes",
  memory_mib: "MiB of memory in sandboxes",
  disk_gib: "GiB of disks of sandboxes",
  template_mib: "MiB of custom templates",
};

function softWarning(quantity: HeldQuantity, used: number, { soft_cap, hard_cap }: Caps): string {
  return `The organization has ${used} ${NOUNS[quantity]}: over its plan's soft cap of ${soft_cap}; the hard cap is ${hard_cap}.`;
}

export function driveWarning(used: number, { soft_cap_bytes, hard_cap_bytes }: PlanCaps["drive"]): string {
  return `The organization's drives take ${used} bytes: over its plan's soft cap of ${soft_cap_bytes}; the hard cap is ${hard_cap_bytes}.`;
}

export function driveExceeded(used: number, cap: number): ServiceError {
  return new ServiceError("quota_exceeded", {
    detail: `The organization's drives take ${used} bytes; its plan allows ${cap}.`,
    details: { limit: "drive", used, cap },
    hint: `Delete files on its drives, destroy rooms with drive=delete (kept drives count too), ${ASK_OPERATOR}.`,
  });
}

/** Warnings for templates, by their disk space. */
export function templateWarnings(used: number, caps: Caps): string[] {
  return used > caps.soft_cap ? [softWarning("template_mib", used, caps)] : [];
}

/** `has` is the start of its detail. */
export function templatesExceeded(used: number, { hard_cap: cap }: Caps, has = "The organization has"): ServiceError {
  return new ServiceError("quota_exceeded", {
    detail: `${has} ${used} ${NOUNS.template_mib}; its plan allows ${cap}.`,
    details: { limit: "template_mib", used, cap },
    hint: `Remove one of its templates, ${ASK_OPERATOR}.`,
  });
}

const ASK_OPERATOR = "or have the operator change the plan with `roomd org set-plan`";

function exceeded(limit: CountedQuantity, used: number, cap: number): ServiceError {
  const ends = limit === "rooms" ? "Destroy a room, hibernate all sandboxes of one" : "Destroy a sandbox";
  return new ServiceError("quota_exceeded", {
    detail: `The organization has ${used} ${NOUNS[limit]}; its plan allows ${cap}.`,
    details: { limit, used, cap },
    hint: `${ends}, ${ASK_OPERATOR}.`,
  });
}
