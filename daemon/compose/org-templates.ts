/** Assembles the module for templates built by organizations. */

import type { Config } from "../core/config/config.ts";
import { egressRules } from "../domain/sandboxes/egress-list.ts";
import { makeOrgTemplates } from "../domain/templates/builds/index.ts";
import type { Base } from "./base.ts";
import { buildApart } from "./build-process.ts";
import type { Orgs } from "./orgs.ts";
import { systemActor } from "./records.ts";

/** The registries configured by the operator; may include "*". */
export const namedRegistries = (config: Config): string[] =>
  config["template.registries"].split(",").flatMap((each) => each.trim().toLowerCase() || []);

export function composeOrgTemplates(base: Base, { quota, meter }: Orgs) {
  const { config, paths, log, database, aside, templates, record } = base;
  const by = { actor: systemActor("builder"), source: "reconciler" } as const;
  return makeOrgTemplates({
    database,
    aside,
    log,
    paths,
    templates,
    most: config["limits.org_templates"],
    buildLimitSeconds: config["limits.template_build"],
    capsOf: (orgId) => quota.capsOf(orgId).template_mib,
    requireMemory: (queries, orgId, memoryMib) => quota.requireBuild(queries, orgId, memoryMib),
    meter,
    registries: namedRegistries(config),
    egressRules: (allowlist) => egressRules("egress_allowlist", allowlist),
    carryOut: (order, onMessage, signal) => {
      const hear: typeof onMessage = (message) => {
        if ("failed" in message) {
          const { org_id, template_id } = order;
          log.info("failed to build a template", { org_id, template_id, error: message.why });
        }
        onMessage(message);
      };
      return buildApart({ config, paths, log }, order, hear, signal);
    },
    onEnded: (org_id, outcome, details) => record({ ...by, event: "template.built", outcome, org_id, details }),
    onSoftExceeded: (org_id, facts) =>
      record({
        ...by,
        event: "quota.soft_exceeded",
        outcome: "success",
        org_id,
        details: { limit: "template_mib", ...facts },
      }),
  });
}
