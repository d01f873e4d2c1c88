/** Storage of an egress list in a sandbox's row. The effect of the list is in domain/egress. */
import type { RuleBreak } from "../../core/call/operation.ts";
import { REFUSALS, readEntry } from "../egress/entries.ts";
import type { SandboxRow } from "./table.ts";

type EgressColumns = Pick<SandboxRow, "egress_mode" | "egress_allowlist">;

/** Invalid entries of the field. */
export function egressRules(field: string, entries: readonly string[] | undefined): RuleBreak[] {
  return (entries ?? []).flatMap((entry, index) => {
    const read = readEntry(entry);
    if (!("refused" in read)) return [];
    const at = `${field}[${index}]`;
    return [{ field: at, code: "invalid_egress_entry", message: `${at} ${REFUSALS[read.refused]}.` }];
  });
}

/** The effective mode and entries of a list; if absent, the configured default. */
export function egressOf(
  entries: readonly string[] | undefined,
  guestNet: boolean,
  fallback: "public" | "none",
): EgressColumns {
  if (!guestNet || entries?.length === 0) return { egress_mode: "none", egress_allowlist: [] };
  if (entries === undefined) return { egress_mode: fallback, egress_allowlist: [] };
  return { egress_mode: entries.includes("*") ? "public" : "allowlist", egress_allowlist: [...entries] };
}

/** The effective allowlist. */
export function listOf({ egress_mode, egress_allowlist }: EgressColumns): readonly string[] {
  return egress_mode === "public" && egress_allowlist.length === 0 ? ["*"] : egress_allowlist;
}
