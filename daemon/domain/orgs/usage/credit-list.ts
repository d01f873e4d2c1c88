/** The operation that lists granted and spent credits. */
import { DEFAULT_PAGE } from "../../../../shared/api/contract.ts";
import { creditList } from "../../../../shared/api/people/credits.ts";
import type { OrgId } from "../../../../shared/ids.ts";
import { makeCursor, readCursor, toPage } from "../../../core/call/cursor.ts";
import { type Bound, bind, type Caller } from "../../../core/call/operation.ts";
import type { Database } from "../../../db/transact.ts";
import type { Balance } from "./credits.ts";
import { listEntries, toEntry } from "./ledger.ts";

const CURSOR = "credits";

/** Cursor of the page after an entry; the same on all hosts. */
export function cursorAfterEntry(entryId: string): string {
  return makeCursor(CURSOR, entryId);
}

interface CreditListDeps {
  database: Pick<Database, "queries">;
  /** Throws org_not_found, insufficient_scope. */
  findOrg(caller: Caller, orgId: string): OrgId;
  credits(orgId: OrgId): Balance;
}

export function makeCreditList({ database, findOrg, credits }: CreditListDeps): Bound {
  return bind(creditList, {
    find: (call, params) => findOrg(call.caller, params.org_id ?? ""),
    run: (_call, { limit = DEFAULT_PAGE, cursor }, orgId) => {
      const found = listEntries(database.queries, orgId, readCursor(CURSOR, cursor), limit + 1);
      const { rows, next_cursor } = toPage(CURSOR, found, limit, ({ entry_id }) => entry_id);
      const { granted, used, remaining } = credits(orgId);
      return { outcome: "ok", body: { granted, used, remaining, items: rows.map(toEntry), next_cursor } };
    },
  });
}
