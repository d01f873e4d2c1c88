/** A build's record as callers see it, and its lookup. */
import type { BuildRecord } from "../../../../shared/api/template-builds.ts";
import type { BuildId } from "../../../../shared/ids.ts";
import { boundTo, type KeyCall } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { getBuild } from "../store.ts";
import type { BuildRow } from "../table.ts";

export function toBuildRecord({ org_id: _, ...row }: BuildRow): BuildRecord {
  return row;
}

/** Builds belong to the whole organization. Throws insufficient_scope for a bound key. */
export function requireWhole({ caller }: KeyCall): void {
  const bound = boundTo(caller);
  if (bound === null) return;
  throw new ServiceError("insufficient_scope", {
    detail: `Templates belong to the whole organization, and the key is bound to ${bound}.`,
    details: { required: "a key that is not bound" },
  });
}

/** Throws insufficient_scope, and template_build_not_found, also for a build of another organization. */
export function findBuild(queries: Queries, call: KeyCall, params: Record<string, string>): BuildRow {
  requireWhole(call);
  const { caller } = call;
  const { template_id, build_id } = params;
  const row = getBuild(queries, caller.org_id, build_id as BuildId);
  if (row && row.template_id === template_id) return row;
  throw new ServiceError("template_build_not_found", {
    inPath: true,
    detail: `There is no build ${build_id} of a template ${template_id}.`,
    hint: "The newest 20 builds of an organization are kept.",
  });
}
