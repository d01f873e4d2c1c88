/** Change of a member's role: keys, invitations and made things that exceed it end in the same commit. */
import type { Role } from "../../../../shared/api/people/members.ts";
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import type { Queries } from "../../../db/client.ts";
import { detailsOf, type EndedAccess, type OrgChanges } from "../../orgs/index.ts";
import { dropInvitationsBy, setRole } from "../store.ts";
import { givenBy } from "./roles.ts";

interface RoleChange {
  org_id: OrgId;
  user_id: UserId;
  role: Role;
  /** Throws if the change is not permitted. Called in its transaction. */
  require(queries: Queries): void;
  /** The member's previous role; called after `require`. */
  before(): Role;
}

/** `within` gets the details for the audit record. Rejects as `require` throws. */
export function changeRole<T>(
  changes: OrgChanges,
  { org_id, user_id, role, require, before }: RoleChange,
  within: (queries: Queries, details: Record<string, unknown>) => T,
): Promise<T> {
  const change = (queries: Queries) => {
    // The member's invitations may exceed the roles that the new role may give.
    if (before() !== role) dropInvitationsBy(queries, org_id, user_id);
    setRole(queries, org_id, user_id, role);
  };
  return changes.endAccess(org_id, user_id, { require, gives: givenBy(role), change }, (queries, ended) =>
    within(queries, { user_id, role, before: before(), ...endedBy(ended) }),
  );
}

/** Details for the audit record of the end of a membership or role. */
export const endedBy = ({ keys, made }: EndedAccess) => ({
  ...(keys.length === 0 ? {} : { key_ids: keys.map(({ key_id }) => key_id) }),
  ...detailsOf(made),
});

/** The keys of applications among them. */
export const keysRevoked = ({ keys, made }: EndedAccess): number => keys.length + made.applications.count;
