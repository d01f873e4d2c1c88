/** Owns what the operator does with people on the host itself: makes them, lets them in by a link, shuts them out. */
import type { Role } from "../../../shared/api/members.ts";
import { newId, type OrgId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { appendAudit } from "../audit/index.ts";
import { getOrg } from "../orgs/index.ts";
import { addLink, pathOf } from "./links.ts";
import { addUser } from "./sign-in.ts";
import {
  changeUser,
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

/** Of a link: where it leads below the service's URL, and until when. */
export interface LinkTo {
  path: string;
  expires_at: string;
}

export function makeUserOperator(database: Database) {
  const record = (queries: Queries, event: string, org_id: OrgId | null, details: Record<string, unknown>) =>
    appendAudit(queries, { event, outcome: "success", at: now(), org_id, actor: OPERATOR, source: "cli", details });
  const linkTo = (queries: Queries, kind: "setup" | "user", user: UserRow | null): LinkTo => {
    dropLinks(queries, kind, user?.user_id ?? null);
    const { token, row } = addLink(queries, { kind, user_id: user?.user_id ?? null, maker: MAKER });
    record(queries, "auth.link_made", null, { kind, ...(user ? { user_id: user.user_id } : {}) });
    return { path: pathOf(kind, token), expires_at: row.expires_at };
  };
  const requireUser = (queries: Queries, email: string): UserRow => {
    const user = userByEmail(queries, email.toLowerCase());
    if (!user)
      throw new ServiceError("member_not_found", {
        detail: `There is no user ${email}.`,
        hint: "`roomd user list` shows who is there.",
      });
    return user;
  };
  return {
    /** For who will be the first owner; a new one takes the place of the one before. Null where somebody is here already. */
    setupLink: () =>
      database.commit((queries) => (listUsers(queries).length > 0 ? null : linkTo(queries, "setup", null))),

    /** Throws already_exists, org_not_found. */
    createUser: ({ email, name, org_id, role }: NewUser) =>
      database.commit((queries) => {
        if (!getOrg(queries, org_id)) throw new ServiceError("org_not_found");
        const row: UserRow = {
          user_id: newId("usr"),
          email: email.toLowerCase(),
          name,
          password_hash: null,
          created_at: now(),
          disabled_at: null,
        };
        addUser(queries, row);
        insertMembership(queries, { org_id, user_id: row.user_id, role, created_at: row.created_at });
        record(queries, "user.created", null, { user_id: row.user_id });
        record(queries, "member.added", org_id, { user_id: row.user_id, role });
        return { user_id: row.user_id, email: row.email, ...linkTo(queries, "user", row) };
      }),

    /** A new way in for who is here; theirs until now still work. Throws member_not_found. */
    linkUser: (email: string) => database.commit((queries) => linkTo(queries, "user", requireUser(queries, email))),

    listUsers: () =>
      listUsers(database.queries).map(({ password_hash, ...user }) => ({
        ...user,
        has_password: password_hash !== null,
        organizations: membershipsOf(database.queries, user.user_id).map(({ org_id, role }) => ({ org_id, role })),
      })),

    /** Shuts somebody out, or lets them in again. Sessions end. Throws member_not_found. */
    disableUser: (email: string, isDisabled: boolean) =>
      database.commit((queries) => {
        const { user_id } = requireUser(queries, email);
        changeUser(queries, user_id, { disabled_at: isDisabled ? now() : null });
        const sessions_ended = isDisabled ? endSessions(queries, user_id, now()) : 0;
        record(queries, isDisabled ? "user.disabled" : "user.enabled", null, { user_id, sessions_ended });
        return { user_id, disabled: isDisabled, sessions_ended };
      }),

    /** Ends all sessions of somebody. Throws member_not_found. */
    signOutUser: (email: string) =>
      database.commit((queries) => {
        const { user_id } = requireUser(queries, email);
        const sessions_ended = endSessions(queries, user_id, now());
        record(queries, "auth.signed_out", null, { user_id, sessions_ended });
        return { user_id, sessions_ended };
      }),
  };
}
