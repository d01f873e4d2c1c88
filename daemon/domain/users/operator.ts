/** The operator's operations on users, on the host itself: creating them, sign-in links, disabling them. */
import type { Role } from "../../../shared/api/people/members.ts";
import { newId, type OrgId, type UserId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { wholly } from "../../core/loop/steps.ts";
import { ServiceError } from "../../core/service-error.ts";
import { type Queries, stepsAtOneMoment } from "../../db/client.ts";
import type { PersonalTable } from "../../db/personal.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit, recordsAbout } from "../audit/index.ts";
import { getOrg, type OrgChanges } from "../orgs/index.ts";
import { beginOrgEnd } from "./members/org-end.ts";
import { addressOf, requirePerson } from "./person.ts";
import { forget, keptOf } from "./personal.ts";
import { addLink, pathOf } from "./sign-in/links.ts";
import { addUser } from "./sign-up/add-user.ts";
import {
  changeUser,
  dropInvitationsBy,
  dropLinks,
  endSessions,
  insertMembership,
  listUsers,
  membershipsOf,
  userByEmail,
} from "./store.ts";
import type { UserRow } from "./table.ts";

const MAKER = { type: "operator", id: "host" };
const OPERATOR = { ...MAKER, name: "operator" };

export interface NewUser {
  email: string;
  name: string;
  org_id: OrgId;
  role: Role;
}

/** Path of a link below the service's URL, and its expiry. */
export interface LinkTo {
  path: string;
  expires_at: string;
}

/** The operator vouches for the address. */
const asVerified = (user: UserRow): UserRow => ({ ...user, verified_at: user.verified_at ?? user.created_at });

export function makeUserOperator(database: Database, changes: OrgChanges, personal: readonly PersonalTable[]) {
  const record = (queries: Queries, event: string, org_id: OrgId | null, details: Record<string, unknown>) =>
    appendAudit(queries, { event, outcome: "success", at: now(), org_id, actor: OPERATOR, source: "cli", details });
  /** Records in each organization of the user, or in the host's chain if the user has none. */
  const recordOf = (queries: Queries, userId: UserId, event: string, details: Record<string, unknown>) => {
    const orgs = membershipsOf(queries, userId).map(({ org_id }) => org_id);
    for (const org_id of orgs.length > 0 ? orgs : [null]) record(queries, event, org_id, details);
  };
  const linkTo = (queries: Queries, kind: "setup" | "user", user: UserRow | null): LinkTo => {
    dropLinks(queries, kind, user?.user_id ?? null);
    const { token, row } = addLink(queries, { kind, user_id: user?.user_id ?? null, maker: MAKER });
    if (user) recordOf(queries, user.user_id, "auth.link_made", { kind, user_id: user.user_id });
    else record(queries, "auth.link_made", null, { kind });
    return { path: pathOf(kind, token), expires_at: row.expires_at };
  };
  const requireUser = (queries: Queries, email: string): UserRow => {
    const user = userByEmail(queries, addressOf(email));
    if (!user)
      throw new ServiceError("member_not_found", {
        detail: `There is no user ${email}.`,
        hint: "`roomd user list` lists the users.",
      });
    return user;
  };
  return {
    /** Link for the first owner; it replaces the previous one. Null if a user exists already. */
    setupLink: () =>
      database.commit((queries) => (listUsers(queries).length > 0 ? null : linkTo(queries, "setup", null))),

    /** Throws validation_failed, already_exists, org_not_found. */
    createUser: ({ email: given, name: called, org_id, role }: NewUser) => {
      const [email, name] = [addressOf(given), called.trim()];
      requirePerson({ email, name });
      return database.commit((queries) => {
        if (getOrg(queries, org_id)?.ending_at !== null) throw new ServiceError("org_not_found");
        const user_id = newId("usr");
        const row: UserRow = {
          user_id,
          email,
          name,
          password_hash: null,
          created_at: now(),
          disabled_at: null,
          verified_at: null,
        };
        addUser(queries, row);
        insertMembership(queries, { org_id, user_id, role, created_at: row.created_at });
        record(queries, "user.created", org_id, { user_id });
        record(queries, "member.added", org_id, { user_id, role });
        return { user_id, email, ...linkTo(queries, "user", row) };
      });
    },

    /** A recovery link for a user; existing sign-in methods still work. Throws member_not_found, invalid_state. */
    linkUser: (email: string) =>
      database.commit((queries) => {
        const user = requireUser(queries, email);
        if (user.disabled_at !== null) {
          throw new ServiceError("invalid_state", {
            detail: `${user.email} is disabled.`,
            hint: `\`roomd user enable ${user.email}\` enables the user again.`,
          });
        }
        if (membershipsOf(queries, user.user_id).length === 0) {
          throw new ServiceError("invalid_state", {
            detail: `${user.email} belongs to no organization.`,
            hint: "An owner or admin of an organization can invite the user.",
          });
        }
        return linkTo(queries, "user", user);
      }),

    listUsers: () =>
      listUsers(database.queries).map(({ password_hash, ...user }) => ({
        ...user,
        has_password: password_hash !== null,
        organizations: membershipsOf(database.queries, user.user_id).map(({ org_id, role }) => ({ org_id, role })),
      })),

    /** Disables or re-enables a user. Disabling ends sessions and applications, and links by or for the user. Throws member_not_found. */
    disableUser: (email: string, isDisabled: boolean) => {
      const { user_id } = requireUser(database.queries, email);
      const change = (queries: Queries, applications_ended: number) => {
        changeUser(queries, user_id, { disabled_at: isDisabled ? now() : null });
        if (isDisabled) {
          dropLinks(queries, "user", user_id);
          for (const { org_id } of membershipsOf(queries, user_id)) dropInvitationsBy(queries, org_id, user_id);
        }
        const ended = { sessions_ended: isDisabled ? endSessions(queries, user_id, now()) : 0, applications_ended };
        recordOf(queries, user_id, isDisabled ? "user.disabled" : "user.enabled", { user_id, ...ended });
        return { user_id, disabled: isDisabled, ...ended };
      };
      return isDisabled
        ? changes.endGrantsOf(user_id, (queries, ended) => change(queries, ended.length))
        : database.commit((queries) => change(queries, 0));
    },

    /** All data stored about a person, and the audit records about them. Throws member_not_found. */
    exportUser: (email: string) => {
      const user = requireUser(database.queries, email);
      return {
        ...wholly(keptOf(database.queries, personal, asVerified(user))),
        records: wholly(stepsAtOneMoment(database.queries, recordsAbout(database.queries, user.user_id))),
      };
    },

    /** Deletes a person: remaining data does not identify the person. Throws member_not_found, last_owner. */
    forgetUser: (email: string) =>
      forget(changes, personal, asVerified(requireUser(database.queries, email)), (queries, forgotten) => {
        record(queries, "user.forgotten", null, { ...forgotten });
        return forgotten;
      }),

    /** The service completes the end. Throws org_not_found, invalid_state if its name differs. */
    endOrg: (orgId: OrgId, name: string) => {
      const require = (queries: Queries) => {
        const org = getOrg(queries, orgId);
        if (org && org.name !== name && org.ending_at === null) {
          throw new ServiceError("invalid_state", {
            detail: `${orgId} has another name: \`roomd org list\` shows it.`,
          });
        }
      };
      return beginOrgEnd(changes, orgId, { but: null, require }, (queries, started) => {
        record(queries, "org.ending", orgId, { ...started });
        return { org_id: orgId, ...started };
      });
    },

    /** Whether the requested end of an organization is complete. */
    hasOrgEnded: (orgId: OrgId): boolean => (getOrg(database.queries, orgId)?.ended_at ?? null) !== null,

    /** Ends all sessions of a user. Throws member_not_found. */
    signOutUser: (email: string) =>
      database.commit((queries) => {
        const { user_id } = requireUser(queries, email);
        const sessions_ended = endSessions(queries, user_id, now());
        recordOf(queries, user_id, "auth.signed_out", { user_id, sessions_ended });
        return { user_id, sessions_ended };
      }),
  };
}
