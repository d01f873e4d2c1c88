/**
 * Exposed ports as resources that end with their maker: the row is marked and no longer found, and its host then closes the open
 * connections and deletes the row with an audit record (exposures.ts).
 */
import { and, eq, isNotNull, isNull, type SQL, sql } from "drizzle-orm";
import { isAmongOver, type MakerRule, madeKind } from "../orgs/index.ts";
import { markEnded } from "./store.ts";
import { ports } from "./table.ts";

/** Of a port in a row; a port without `ends_with` is a guest's, and ends with its sandbox. */
export const PORT_RULE: MakerRule = { scope: "ports:write", isPersonal: false };

export const portsMade = madeKind({
  name: "ports",
  table: ports,
  isHere: true,
  takeOver: "The key that exposes the port again becomes its maker; a program in the sandbox does not.",
  find: (queries, isOver, orgId) => {
    const { org_id, ends_with, ended_at, label } = ports;
    const isOpen = and(eq(org_id, orgId), isNotNull(ends_with), isNull(ended_at)) as SQL;
    const makers = sql`SELECT DISTINCT ${ends_with} AS id FROM ${ports} WHERE ${isOpen}`;
    const over = (id: SQL) => isOver({ org_id: orgId, type: sql`'key'`, id }, PORT_RULE);
    const where = and(isOpen, isAmongOver(ends_with, makers, over));
    return queries.select({ label }).from(ports).where(where).all();
  },
  idOf: ({ label }) => label,
  end: (queries, rows, at) =>
    markEnded(
      queries,
      rows.map(({ label }) => label),
      at,
    ),
});
