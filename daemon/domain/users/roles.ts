/** Owns what each role may: what a session of it does, and what keys it may make. */
import { READ_SCOPES, SCOPES, type Scope } from "../../../shared/api/contract.ts";
import type { Role } from "../../../shared/api/members.ts";
import type { Caller } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";

const OF_ADMINS: readonly Scope[] = ["org:admin"];
/** With it one sees to the keys of others too. */
const OF_KEEPERS: readonly Scope[] = ["keys:write"];

/** Of a session. */
export function scopesOf(role: Role): readonly Scope[] {
  return role === "viewer" ? READ_SCOPES : [...READ_SCOPES, "keys:write"];
}

/** Of the keys that it makes. */
export function givenBy(role: Role): readonly Scope[] {
  if (role === "viewer") return [];
  if (role === "member") return SCOPES.filter((scope) => !OF_ADMINS.includes(scope) && !OF_KEEPERS.includes(scope));
  return SCOPES;
}

export const keepsMembers = (role: Role): boolean => role === "owner" || role === "admin";

/** Throws insufficient_scope. */
export function requireKeeper(caller: Caller): Role {
  const role = caller.session?.role ?? "viewer";
  if (keepsMembers(role)) return role;
  throw new ServiceError("insufficient_scope", {
    detail: "Owners and admins see to an organization's members.",
    details: { required: "admin" },
  });
}

/** Only an owner makes an owner, or unmakes one. Throws insufficient_scope. */
export function requireOver(role: Role, others: readonly Role[]): void {
  if (role === "owner" || !others.includes("owner")) return;
  throw new ServiceError("insufficient_scope", {
    detail: "Only an owner makes an owner, or unmakes one.",
    details: { required: "owner" },
  });
}
