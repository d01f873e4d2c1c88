/**
 * Makers of what lasts: a person, or a line of keys that were rotated one into another. It is valid as long as it could be made
 * again: until the person leaves the organization or has a role without the scope for it, or the last key of the line ends.
 */
import type { Scope } from "../../../shared/api/contract.ts";
import type { KeyId, OrgId, UserId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import { isLineGood } from "../orgs/index.ts";
import { givenBy } from "./roles.ts";
import { getMembership } from "./store.ts";

export interface Maker {
  org_id: OrgId;
  /** Actor type. Actors other than users and keys belong to the host, and stay valid. */
  type: string;
  id: string;
}

export function isMakerGood(queries: Queries, { org_id, type, id }: Maker, scope: Scope): boolean {
  if (type === "user") return givenBy(getMembership(queries, org_id, id as UserId)?.role ?? "viewer").includes(scope);
  if (type === "key") return isLineGood(queries, id as KeyId);
  return true;
}
