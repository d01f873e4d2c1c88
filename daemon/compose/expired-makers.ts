/** Ends resources of expired makers: a key expires without a call that would end them. */
import { loopTime, ownerOf, Pieces } from "../core/loop/index.ts";
import type { Queries } from "../db/client.ts";
import { listOrgs, type OrgChanges } from "../domain/orgs/index.ts";

export async function endExpiredMakers(queries: Queries, changes: OrgChanges): Promise<void> {
  for (const { org_id } of listOrgs(queries)) {
    await new Pieces(loopTime, ownerOf(org_id), "retention").turn();
    await changes.endMadeIn(org_id);
  }
}
