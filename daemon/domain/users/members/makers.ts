/** SQL condition that a maker (orgs/made.ts) has lost access, for persons and for lines of keys. */
import { sql } from "drizzle-orm";
import { ROLES, type Role } from "../../../../shared/api/people/members.ts";
import type { Queries } from "../../../db/client.ts";
import { type IsOver, isKeyOver, type Maker, type MakerRule } from "../../orgs/index.ts";
import { givenBy } from "./roles.ts";

export const isOver: IsOver = ({ org_id, type, id }, rule) => sql`CASE ${type}
  WHEN 'user' THEN NOT EXISTS (
    SELECT 1 FROM memberships AS own WHERE own.org_id = ${org_id} AND own.user_id = ${id}
      AND own.role IN (SELECT value FROM json_each(${JSON.stringify(rolesWith(rule))})))
  WHEN 'key' THEN ${isKeyOver(id, rule)}
  ELSE 0 END`;

const rolesWith = ({ scope }: MakerRule): Role[] => ROLES.filter((role) => givenBy(role).includes(scope));

/** Whether the maker still has the right to make the resource. */
export function isMakerGood(queries: Queries, maker: Maker, rule: MakerRule): boolean {
  const [found] = queries.all<{ over: number }>(sql`SELECT ${isOver(maker, rule)} AS over`);
  return found?.over === 0;
}
