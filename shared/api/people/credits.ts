/** Interface of credits: an organization's grants and spending. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, nullable, oneOf, operation, pageQuery, record, timestamp } from "../contract.ts";
import { orgPath } from "../orgs.ts";
import { anyWarnings } from "../rooms.ts";

const entry = record("LedgerEntry", {
  entry_id: Type.String(),
  at: timestamp,
  kind: oneOf(["grant", "withdrawal", "spend"], {
    description: "spend: by the price table, one entry a day in UTC.",
  }),
  amount: Type.Number({ description: "Credits; negative if spent or withdrawn." }),
  reason: Type.String(),
});
export type LedgerEntry = Static<typeof entry>;

export const creditList = operation({
  name: "credit_list",
  extension: "billing",
  method: "GET",
  path: "/v1/orgs/{org_id}/credits",
  summary: "List credits granted and spent",
  description: "Newest first. Credits of the plan have no entry: they exist as long as the plan.",
  access: "usage:read",
  params: orgPath,
  query: fields(pageQuery),
  body: null,
  output: fields({
    granted: nullable(Type.Number({ description: "Granted by the plan and in addition to it; null: no limit." })),
    used: Type.Number(),
    remaining: nullable(Type.Number()),
    items: Type.Array(entry),
    next_cursor: nullable(Type.String()),
    warnings: anyWarnings,
  }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "invalid_cursor"],
  audit: "usage.read",
});
