/** Owns what follows when a member gets another role, whoever gives it: keys and invitations beyond it end in the same commit. */
import type { Role } from "../../../shared/api/members.ts";
import type { OrgId, UserId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import type { OrgChanges } from "../orgs/index.ts";
import { givenBy } from "./roles.ts";
import { dropInvitationsBy, setRole } from "./store.ts";

interface RoleChange {
  org_id: OrgId;
  user_id: UserId;
  role: Role;
  /** Whether it may be, in the transaction that does it. Throws. */
  require(queries: Queries): void;
  /** What the member had; asked after `require`. */
  before(): Role;
}

/** `within` gets what the record tells. Rejects as `require` throws. */
export function changeRole<T>(
  changes: OrgChanges,
  { org_id, user_id, role, require, before }: RoleChange,
  within: (queries: Queries, details: Record<string, unknown>) => T,
): Promise<T> {
  return changes.revokeKeysOf(org_id, user_id, { require, gives: givenBy(role) }, (queries, { keys, sshKeys }) => {
    // Who may give less has invited nobody to more.
    if (before() !== role) dropInvitationsBy(queries, org_id, user_id);
    setRole(queries, org_id, user_id, role);
    return within(queries, { user_id, role, before: before(), ...endedBy(keys, sshKeys) });
  });
}

/** What a record tells of what ended with a membership or a role. */
export const endedBy = (keys: readonly { key_id: string }[], sshKeys: readonly { ssh_key_id: string }[]) => ({
  ...(keys.length === 0 ? {} : { key_ids: keys.map(({ key_id }) => key_id) }),
  ...(sshKeys.length === 0 ? {} : { ssh_key_ids: sshKeys.map(({ ssh_key_id }) => ssh_key_id) }),
});
