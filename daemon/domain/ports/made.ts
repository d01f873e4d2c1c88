/**
 * Exposed ports as resources that end with their maker: one row marks the maker, so that none of its ports is found, and the host
 * then closes the open connections and deletes the ports with audit records (exposures.ts). A key may have exposed thousands.
 */
import { sql } from "drizzle-orm";
import { type MakerRule, madeKind } from "../orgs/index.ts";
import { endMaker, makersWithPorts } from "./store.ts";
import { ports } from "./table.ts";

/** Rule for a port in a row; a port without `ends_with` was made by a guest, and ends with its sandbox. */
export const PORT_RULE: MakerRule = { scope: "ports:write", isPersonal: false };

export const portsMade = madeKind({
  name: "ports",
  table: ports,
  isHere: true,
  takeOver: "The key that exposes the port again becomes its maker; a program in the sandbox does not.",
  find: (queries, isOver, orgId) =>
    makersWithPorts(queries, orgId, (id) => isOver({ org_id: orgId, type: sql`'key'`, id }, PORT_RULE)),
  count: (rows) => rows.reduce((sum, row) => sum + row.count, 0),
  end: (queries, rows, at) => {
    for (const { ends_with } of rows) endMaker(queries, ends_with, at);
  },
});
