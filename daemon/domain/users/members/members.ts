/** Operations on members of an organization, and on invitations to it. */
import {
  type InvitationRecord,
  invitationCreate,
  invitationDelete,
  invitationList,
  MAX_INVITATIONS,
  MAX_MEMBERS,
  type MemberRecord,
  memberList,
  memberRemove,
  memberUpdate,
} from "../../../../shared/api/people/members.ts";
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import { type Bound, bind, type KeyCall } from "../../../core/call/operation.ts";
import { now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { post } from "../../mail/index.ts";
import { countsOf, getOrg } from "../../orgs/index.ts";
import { whoIs } from "../account.ts";
import type { UserDeps } from "../deps.ts";
import { byAddress, noteDeparted } from "../identities/tombstone.ts";
import { addLink, type EmailLinks, pathOf } from "../sign-in/links.ts";
import {
  countMembers,
  countOwners,
  deleteMembership,
  dropInvitationsBy,
  endSessions,
  getMembership,
  getUser,
  listInvitations,
  listMembers,
  useLink,
} from "../store.ts";
import type { LinkRow } from "../table.ts";
import { changeRole, endedBy, keysRevoked } from "./role-change.ts";
import { requireKeeper, requireOver } from "./roles.ts";

type MemberDeps = Pick<UserDeps, "database" | "changes" | "url" | "hasMail" | "onEnded"> & { links: EmailLinks };

export function makeMembers({ database, changes, url, links, hasMail, onEnded }: MemberDeps): Bound[] {
  const { queries } = database;
  const find = ({ caller }: KeyCall, { org_id }: Record<string, string>): OrgId => {
    if (org_id !== "self" && org_id !== caller.org_id) throw new ServiceError("org_not_found");
    return caller.org_id;
  };
  const findMember = (call: KeyCall, params: Record<string, string>) => {
    const org_id = find(call, params);
    const user_id = (params.user_id === "self" ? call.caller.key_id : params.user_id) as string as UserId;
    if (!getMembership(queries, org_id, user_id)) throw new ServiceError("member_not_found");
    return { org_id, user_id };
  };
  return [
    bind(memberList, {
      find,
      run: (_call, _input, orgId) => ({ outcome: "ok", body: { items: listMembers(queries, orgId).map(toRecord) } }),
    }),

    bind(memberUpdate, {
      find: findMember,
      run: async (call, { role }, { org_id, user_id }) => {
        let before = role;
        const require = (within: Queries) => {
          before = requireMember(within, org_id, user_id).role;
          requireOver(requireKeeper(within, call.caller), [before, role]);
          if (role !== "owner") requireOtherOwner(within, org_id, user_id, before);
        };
        call.work.whenSettled(onEnded);
        const change = { org_id, user_id, role, require, before: () => before };
        const body = await changeRole(changes, change, (within, details) => {
          const changed = toRecord(requireMember(within, org_id, user_id));
          call.audit.details = details;
          call.work.keep("ok", changed);
          return changed;
        });
        return { outcome: "ok", body };
      },
    }),

    bind(memberRemove, {
      find: findMember,
      run: async (call, _input, { org_id, user_id }) => {
        // A leaving member needs no permission.
        const isLeaving = whoIs(call).user_id === user_id;
        const require = (within: Queries) => {
          const { role } = requireMember(within, org_id, user_id);
          if (!isLeaving) requireOver(requireKeeper(within, call.caller), [role]);
          requireOtherOwner(within, org_id, user_id, role);
        };
        call.work.whenSettled(onEnded);
        const change = (within: Queries) => {
          deleteMembership(within, org_id, user_id);
          dropInvitationsBy(within, org_id, user_id);
          noteDeparted(within, org_id, user_id);
          noteDeparted(within, org_id, user_id, byAddress(getUser(within, user_id)?.email ?? ""));
        };
        const body = await changes.endAccess(org_id, user_id, { require, gives: [], change }, (within, ended) => {
          const sessions_ended = endSessions(within, user_id, now(), { orgId: org_id });
          const removed = { user_id, keys_revoked: keysRevoked(ended), sessions_ended };
          call.audit.details = { ...removed, ...endedBy(ended) };
          const body = { ...removed, ended: countsOf(ended.made) };
          call.work.keep("ok", body);
          return body;
        });
        return { outcome: "ok", body };
      },
    }),

    bind(invitationCreate, {
      find,
      run: async (call, { role, email }, org_id) => {
        const body = await database.commit((within) => {
          requireOver(requireKeeper(within, call.caller), [role]);
          if (getOrg(within, org_id)?.ending_at !== null) throw new ServiceError("org_not_found");
          if (listInvitations(within, org_id, now()).length >= MAX_INVITATIONS) {
            throw new ServiceError("quota_exceeded", {
              detail: `An organization may have ${MAX_INVITATIONS} invitations.`,
            });
          }
          if (countMembers(within, org_id) >= MAX_MEMBERS) {
            throw new ServiceError("quota_exceeded", { detail: `An organization may have ${MAX_MEMBERS} members.` });
          }
          const { user_id } = whoIs(call);
          const maker = { type: "user", id: user_id };
          const to = email?.toLowerCase() ?? null;
          const { token, row } = addLink(within, { kind: "invitation", org_id, role, email: to, maker });
          const path = pathOf("invitation", token);
          const { link_id } = row;
          const is_mailed = hasMail && to !== null && post(within, { kind: "invitation", to, user_id, link_id });
          if (is_mailed) links.show(link_id, path);
          const made = { ...invitationOf(row), url: url() + path, is_mailed };
          call.audit.details = { invitation_id: link_id, role, is_mailed };
          call.work.keep("created", made);
          return made;
        });
        return { outcome: "created", body };
      },
    }),

    bind(invitationList, {
      find: (call, params) => {
        const org_id = find(call, params);
        requireKeeper(queries, call.caller);
        return org_id;
      },
      run: (_call, _input, orgId) => {
        return { outcome: "ok", body: { items: listInvitations(queries, orgId, now()).map(invitationOf) } };
      },
    }),

    bind(invitationDelete, {
      find: (call, params) => {
        const org_id = find(call, params);
        requireKeeper(queries, call.caller);
        const row = listInvitations(queries, org_id, now()).find((each) => each.link_id === params.invitation_id);
        if (!row) throw new ServiceError("invitation_not_found");
        return row;
      },
      run: async (call, _input, { link_id }) => {
        const body = await database.commit((within) => {
          // It may have been accepted since.
          if (!useLink(within, link_id, now())) throw new ServiceError("invitation_not_found");
          const withdrawn = { invitation_id: link_id };
          call.audit.details = withdrawn;
          call.work.keep("ok", withdrawn);
          return withdrawn;
        });
        return { outcome: "ok", body };
      },
    }),
  ];
}

/** Throws last_owner. */
function requireOtherOwner(queries: Queries, orgId: OrgId, userId: UserId, role: MemberRecord["role"]): void {
  if (role !== "owner" || countOwners(queries, orgId, userId) > 0) return;
  throw new ServiceError("last_owner", {
    detail: "The member is the organization's only owner.",
    hint: "Make another member an owner first, or delete the organization.",
  });
}

function requireMember(queries: Queries, orgId: OrgId, userId: UserId) {
  const [member] = listMembers(queries, orgId, userId);
  if (!member) throw new ServiceError("member_not_found");
  return member;
}

function toRecord({ user_id, email, name, role, created_at, disabled_at }: MemberRecord): MemberRecord {
  return { user_id, email, name, role, created_at, disabled_at };
}

function invitationOf({ link_id, email, role, created_at, expires_at }: LinkRow): InvitationRecord {
  return { invitation_id: link_id, email, role: role ?? "viewer", created_at, expires_at };
}
