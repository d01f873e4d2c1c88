/** Permissions of each role: scopes of its members' keys, and management of other members. */
import { SCOPES, type Scope } from "../../../../shared/api/contract.ts";
import type { Role } from "../../../../shared/api/people/members.ts";
import type { UserId } from "../../../../shared/ids.ts";
import type { Caller } from "../../../core/call/operation.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { getMembership } from "../store.ts";

/** Scopes to manage the whole organization, or keys of others. */
const OF_KEEPERS: readonly Scope[] = ["org:admin", "keys:write"];
const OF_MEMBERS = SCOPES.filter((scope) => !OF_KEEPERS.includes(scope));

/** Scopes that a person of this role may give to keys. */
export function givenBy(role: Role): readonly Scope[] {
  if (role === "viewer") return [];
  return role === "member" ? OF_MEMBERS : SCOPES;
}

/** Checks the role in this transaction: it may have changed since the call arrived. Throws insufficient_scope. */
export function requireKeeper(queries: Queries, { org_id, key_id }: Pick<Caller, "org_id" | "key_id">): Role {
  const role = getMembership(queries, org_id, key_id as string as UserId)?.role;
  if (role === "owner" || role === "admin") return role;
  throw new ServiceError("insufficient_scope", {
    detail: "Only owners and admins can manage an organization's members.",
    details: { required: "admin" },
  });
}

/** Checks the role in this transaction. Throws insufficient_scope. */
export function requireOwner(queries: Queries, { org_id, key_id }: Pick<Caller, "org_id" | "key_id">): void {
  if (getMembership(queries, org_id, key_id as string as UserId)?.role === "owner") return;
  throw new ServiceError("insufficient_scope", {
    detail: "Only an owner may do that.",
    details: { required: "owner" },
  });
}

/** Only an owner can grant or remove the role owner. Throws insufficient_scope. */
export function requireOver(role: Role, others: readonly Role[]): void {
  if (role === "owner" || !others.includes("owner")) return;
  throw new ServiceError("insufficient_scope", {
    detail: "Only an owner can grant or remove the role owner.",
    details: { required: "owner" },
  });
}
