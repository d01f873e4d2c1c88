/** Templates that organizations build for themselves: requests, progress, cancellation, removal. */
import { rm } from "node:fs/promises";
import { templateBuildEnd, templateBuildGet, templateRemove } from "../../../../shared/api/template-builds.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { type Bound, bind } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { removeTemplate } from "../build.ts";
import { getBuild } from "../store.ts";
import { makeAsk } from "./ask.ts";
import type { BuildsDeps } from "./deps.ts";
import { Builds } from "./queue.ts";
import { findBuild, requireWhole, toBuildRecord } from "./record.ts";
import { makeBuildStream } from "./stream.ts";

export function makeOrgTemplates(deps: BuildsDeps) {
  const { database, paths, templates } = deps;
  const builds = new Builds(deps);
  const operations: Bound[] = [
    makeAsk(deps, builds),
    makeBuildStream(deps, builds),
    bind(templateBuildGet, {
      find: (call, params) => findBuild(database.queries, call, params),
      run: (_call, _input, row) => ({ outcome: "ok", body: toBuildRecord(row) }),
    }),
    bind(templateBuildEnd, {
      find: (call, params) => findBuild(database.queries, call, params),
      run: async ({ audit }, _input, row) => {
        const { org_id, template_id, build_id } = row;
        audit.details = { template_id, build_id };
        await builds.end(build_id);
        const ended = getBuild(database.queries, org_id, build_id) ?? row;
        return { outcome: "ended", body: toBuildRecord(ended) };
      },
    }),
    bind(templateRemove, {
      find: (call, { template_id = "" }) => {
        requireWhole(call);
        const { caller } = call;
        const template = templates.get(template_id, caller.org_id);
        if (template?.owner === caller.org_id) return template;
        throw new ServiceError("template_not_found", {
          inPath: true,
          detail: `The organization has no custom template ${template_id}.`,
          ...(template && { hint: "It belongs to the host: the operator can remove it with `roomd template remove`." }),
        });
      },
      run: async ({ caller, audit }, _input, { record: { template_id } }) => {
        audit.details = { template_id };
        await removeTemplate(paths, template_id, caller.org_id);
        return { outcome: "removed", body: { template_id, state: "removed" as const } };
      },
    }),
  ];
  return {
    operations,
    /** Marks builds that an earlier daemon did not finish as failed. */
    recover: () => builds.recover(),
    /** Removes all templates and builds of an organization that ends. */
    forgetOrg: async (orgId: OrgId) => {
      await builds.forgetOrg(orgId);
      for (const own of [paths.templates_of(orgId), paths.kept_roots_of(orgId)])
        await rm(own, { recursive: true, force: true });
    },
    stop: () => builds.stop(),
  };
}
