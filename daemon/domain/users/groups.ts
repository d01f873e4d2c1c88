/**
 * Owns what an account's groups at the issuer make its person in oidc.org: looked at whenever somebody signs in by it, so that who is moved
 * there is moved here. Owners are made here alone, and stay it.
 */
import type { OrgId, UserId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { ConfigError } from "../../core/config.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import type { Directory } from "../orgs/index.ts";
import { givenBy } from "./roles.ts";
import { dropInvitationsBy, getMembership, setRole } from "./store.ts";

/** What may be had by a group; the first is the most. */
const ROLES = ["admin", "member", "viewer"] as const;
export type GivenRole = (typeof ROLES)[number];

/** Of each group the role that it gives. */
export type GroupRoles = ReadonlyMap<string, GivenRole>;

/** `text`: `group=role`, separated by commas. Throws ConfigError. */
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

/** The most that the groups give; null: none of them gives any. */
export function roleOf(roles: GroupRoles, groups: readonly string[]): GivenRole | null {
  const given = groups.flatMap((group) => roles.get(group) ?? []);
  return ROLES.find((role) => given.includes(role)) ?? null;
}

/** Puts a member into the role that is given, with all that follows from less; of others nothing changes. */
export async function follow(
  queries: Queries,
  directory: Directory,
  { org_id, user_id, role }: { org_id: OrgId; user_id: UserId; role: GivenRole },
): Promise<void> {
  const before = getMembership(queries, org_id, user_id)?.role;
  if (before === undefined || before === "owner" || before === role) return;
  const require = (within: Queries) => {
    if (getMembership(within, org_id, user_id)?.role === before) return;
    throw new ServiceError("sign_in_failed", { detail: "Your role has just changed. Try again." });
  };
  await directory.revokeKeysOf(org_id, user_id, { require, gives: givenBy(role) }, (within, { keys }) => {
    dropInvitationsBy(within, org_id, user_id);
    setRole(within, org_id, user_id, role);
    const actor = { type: "system", id: "oidc", name: "oidc" };
    const details = { user_id, role, before, keys_revoked: keys.length };
    const what = { event: "member.role_set", outcome: "success", source: "web", details } as const;
    appendAudit(within, { ...what, at: now(), org_id, actor });
  });
}
