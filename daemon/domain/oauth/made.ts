/** Applications end with their maker, a person: the key of the grant is revoked, and its row in `grants` is deleted. */
import { and, eq, gt, isNull, or, type SQL, sql } from "drizzle-orm";
import { grantEnd } from "../../../shared/api/grants.ts";
import { now } from "../../core/clock.ts";
import { appendAudit } from "../audit/index.ts";
import { apiKeys, endKey, isAmongOver, type MakerRule, madeKind } from "../orgs/index.ts";
import { dropGrant } from "./store.ts";
import { grants } from "./table.ts";

/** Every role with one of the scopes of grants has all of them: test/unit/domain/oauth/made.test.ts. */
const RULE: MakerRule = { scope: "rooms:read", isPersonal: true };
const ACTOR = { type: "system", id: "oauth", name: "oauth" };

export const applicationsMade = madeKind({
  name: "applications",
  table: grants,
  takeOver: null,
  find: (queries, isOver, orgId) => {
    const { key_id, org_id, name, kind, revoked_at, expires_at, created_by_id: id } = apiKeys;
    // A literal: SQLite does not use the partial index with a parameter.
    const isGrant = and(eq(org_id, orgId), sql`${kind} = 'oauth'`);
    const isGood = or(isNull(expires_at), gt(expires_at, now()));
    const isOpen = and(isGrant, isNull(revoked_at)) as SQL;
    const makers = sql`SELECT DISTINCT ${id} AS id FROM ${apiKeys} WHERE ${isOpen}`;
    const over = (person: SQL) => isOver({ org_id: orgId, type: sql`'user'`, id: person }, RULE);
    const condition = and(isOpen, isGood, isAmongOver(id, makers, over));
    return queries.select({ key_id, org_id, name }).from(apiKeys).where(condition).all();
  },
  idOf: ({ key_id }) => key_id,
  end: (queries, rows, at) => {
    for (const { key_id, org_id, name } of rows) {
      endKey(queries, key_id, { withMaker: true });
      dropGrant(queries, key_id);
      appendAudit(queries, {
        ...{ event: grantEnd.audit, outcome: "success", at, org_id, actor: ACTOR, source: "reconciler" },
        details: { grant_id: key_id, name, reason: "maker_ended" },
      });
    }
  },
});
