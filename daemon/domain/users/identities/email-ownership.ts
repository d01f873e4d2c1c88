/**
 * Ownership of e-mail addresses: an address belongs to the user that has verified it. A user that only claims it, or is a member of no
 * organization any more, loses it to a user that verifies it, so that no user can block another person's address.
 */
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import type { Queries } from "../../../db/client.ts";
import { appendAudit } from "../../audit/index.ts";
import { dropPasskeys } from "../sign-in/passkeys-store.ts";
import { changeUser, dropLinks, membershipsOf, userByEmail } from "../store.ts";
import type { UserRow } from "../table.ts";
import { dropIdentities } from "./identities-store.ts";

/** Belongs nowhere. */
const NOBODY = "usr_nobody" as UserId;
const ACTOR = { type: "system", id: "users", name: "users" };

/** The user that has this address, and has verified it. */
export function ownerOfEmail(queries: Queries, email: string): UserRow | undefined {
  const { user, orgs } = found(queries, email);
  return user && user.verified_at !== null && orgs.length > 0 ? user : undefined;
}

/** The user with this address, and the user's organizations: the same work for an unknown address. */
export function found(queries: Queries, email: string): { user: UserRow | undefined; orgs: readonly OrgId[] } {
  const user = userByEmail(queries, email);
  return { user, orgs: membershipsOf(queries, user?.user_id ?? NOBODY).map(({ org_id }) => org_id) };
}

/** Whether a user here claims the address without having verified it. */
export function isClaimed(queries: Queries, email: string): boolean {
  const user = userByEmail(queries, email);
  return user !== undefined && user.verified_at === null && membershipsOf(queries, user.user_id).length > 0;
}

/** Within a transaction, for a user that has just verified the address: removes it from another user that does not own it (`ownerOfEmail`). */
export function releaseEmail(queries: Queries, email: string, to: UserId | null): void {
  const user = userByEmail(queries, email);
  if (!user || user.user_id === to || ownerOfEmail(queries, email)) return;
  const { user_id } = user;
  changeUser(queries, user_id, { email: `${user_id}@no-address.invalid`, verified_at: null });
  dropLinks(queries, "email", user_id);
  dropLinks(queries, "user", user_id);
  if (membershipsOf(queries, user_id).length === 0) {
    // Removed too: the same person returns with other sign-in methods.
    dropIdentities(queries, user_id);
    dropPasskeys(queries, user_id);
  }
  for (const { org_id } of membershipsOf(queries, user_id)) {
    const entry = { event: "user.address_lost", outcome: "success", source: "reconciler" } as const;
    appendAudit(queries, { ...entry, at: now(), org_id, actor: ACTOR, details: { user_id } });
  }
}
