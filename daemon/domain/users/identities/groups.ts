/**
 * Roles in oidc.org by an account's groups at the issuer: evaluated at each sign-in with the account, so that a change of group changes the
 * role. Owners are appointed only here, and remain owners.
 */
import type { Role } from "../../../../shared/api/people/members.ts";
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import { ConfigError } from "../../../core/config/config.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { appendAudit } from "../../audit/index.ts";
import type { OrgChanges } from "../../orgs/index.ts";
import { changeRole } from "../members/role-change.ts";
import { getMembership } from "../store.ts";

/** Roles that a group can give, the highest first. */
const ROLES = ["admin", "member", "viewer"] as const;
export type GivenRole = (typeof ROLES)[number];

/** Role given by each group. */
export type GroupRoles = ReadonlyMap<string, GivenRole>;

/** Parses `group=role` pairs, separated by commas. Throws ConfigError. */
export function readGroupRoles(text: string): GroupRoles {
  const roles = new Map<string, GivenRole>();
  for (const part of text
    .split(",")
    .map((each) => each.trim())
    .filter(Boolean)) {
    const [, group = "", given = ""] = /^(.+?)\s*=\s*([a-z]+)$/.exec(part) ?? [];
    const role = ROLES.find((each) => each === given);
    if (group.trim() === "" || !role) {
      throw new ConfigError(
        `oidc.group_roles = ${JSON.stringify(text)}: ${JSON.stringify(part)} must be GROUP=admin, member or viewer`,
      );
    }
    roles.set(group.trim(), role);
  }
  return roles;
}

/** The highest role that the groups give; null if they give none. */
export function roleOf(roles: GroupRoles, groups: readonly string[]): GivenRole | null {
  const given = groups.flatMap((group) => roles.get(group) ?? []);
  return ROLES.find((role) => given.includes(role)) ?? null;
}

/** Changes a member's role to the given one if it differs, with all consequences of a smaller role. Throws sign_in_failed. */
export async function follow(
  changes: OrgChanges,
  { org_id, user_id, before, role }: { org_id: OrgId; user_id: UserId; before: Role; role: GivenRole },
): Promise<void> {
  const require = (within: Queries) => {
    if (getMembership(within, org_id, user_id)?.role === before) return;
    throw new ServiceError("sign_in_failed", { detail: "Your role has just changed. Sign in again." });
  };
  await changeRole(changes, { org_id, user_id, role, require, before: () => before }, (within, details) => {
    const actor = { type: "system", id: "oidc", name: "oidc" };
    const entry = { event: "member.role_set", outcome: "success", source: "web", details } as const;
    appendAudit(within, { ...entry, at: now(), org_id, actor });
  });
}
