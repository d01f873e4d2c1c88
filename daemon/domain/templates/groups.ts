/** Numbers of the groups that read organizations' templates (host/isolation/ids.ts): one per organization, from its first template on. */
import { join } from "node:path";
import { eq, max } from "drizzle-orm";
import type { OrgId } from "../../../shared/ids.ts";
import type { Paths } from "../../core/config/paths.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { namesIn } from "../../host/files/gone.ts";
import { readableTemplate } from "../../host/isolation/directories.ts";
import { VERSION } from "./registry.ts";
import { templateGroups } from "./table.ts";

export interface TemplateGroups {
  /** Null if the organization has never had a template. */
  numberOf(orgId: OrgId): number | null;
  /** Returns the organization's number, and assigns one if it has none. */
  take(orgId: OrgId): Promise<number>;
}

export function makeTemplateGroups(database: Pick<Database, "queries" | "commit">): TemplateGroups {
  const numberIn = (queries: Queries, orgId: OrgId): number | null =>
    queries.select().from(templateGroups).where(eq(templateGroups.org_id, orgId)).get()?.number ?? null;
  return {
    numberOf: (orgId) => numberIn(database.queries, orgId),
    take: async (orgId) =>
      numberIn(database.queries, orgId) ??
      (await database.commit((queries) => {
        // A build in another process may have assigned one.
        const taken = numberIn(queries, orgId);
        if (taken !== null) return taken;
        const { last } =
          queries
            .select({ last: max(templateGroups.number) })
            .from(templateGroups)
            .get() ?? {};
        const number = (last ?? -1) + 1;
        queries.insert(templateGroups).values({ org_id: orgId, number }).run();
        return number;
      })),
  };
}

/** Sets the group of the files of all versions of organizations' templates to the group of their owner. */
export async function regroupOrgTemplates(
  paths: Pick<Paths, "org_templates" | "template">,
  groupOf: (owner: OrgId) => Promise<number | null>,
): Promise<void> {
  const pieces = new Pieces(loopTime, "host", "reconcile");
  for (const owner of (await namesIn(paths.org_templates)) as OrgId[]) {
    const group = await groupOf(owner);
    for (const templateId of await namesIn(join(paths.org_templates, owner))) {
      const home = paths.template(templateId, owner);
      for (const version of (await namesIn(home)).filter((name) => VERSION.test(name))) {
        readableTemplate(join(home, version), group);
        const turn = pieces.next();
        if (turn) await turn;
      }
    }
  }
}
