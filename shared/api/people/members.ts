/** Interface of an organization's members. */
import { type Static, Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, record, timestamp } from "../contract.ts";
import { endedMade } from "../made.ts";
import { orgPath } from "../orgs.ts";

/** In descending order of rights: everything; all but billing and ending the organization; own keys, and reading; reading. */
export const ROLES = ["owner", "admin", "member", "viewer"] as const;
export type Role = (typeof ROLES)[number];
/** Maximum numbers for one organization. */
export const MAX_MEMBERS = 1000;
export const MAX_INVITATIONS = 1000;
/** Validity of an invitation. */
export const INVITATION_SECONDS = 72 * 3600;

/** Length and pattern of an e-mail address, for code that validates it separately. */
export const email = {
  minLength: 3,
  maxLength: 254,
  pattern: '^[^\\s@<>"\\u0000-\\u001f\\u007f]{1,64}@[^\\s@<>"\\u0000-\\u001f\\u007f]{1,189}$',
};
export const personName = { minLength: 1, maxLength: 128, pattern: "^[^\\u0000-\\u001f\\u007f]*$" };
const role = oneOf(ROLES);

const member = record("Member", {
  user_id: Type.String(),
  email: Type.String(),
  name: Type.String(),
  role,
  created_at: timestamp,
  disabled_at: nullable(timestamp),
});
export type MemberRecord = Static<typeof member>;

const invitation = record("Invitation", {
  invitation_id: Type.String(),
  email: nullable(Type.String({ description: "The address it is for; null: anyone with the link." })),
  role,
  created_at: timestamp,
  expires_at: timestamp,
});
export type InvitationRecord = Static<typeof invitation>;

const memberPath = fields({ ...orgPath.properties, user_id: Type.String({ maxLength: 64 }) });
const invitationPath = fields({ ...orgPath.properties, invitation_id: Type.String({ maxLength: 64 }) });

export const memberList = operation({
  name: "member_list",
  extension: "account",
  method: "GET",
  path: "/v1/orgs/{org_id}/members",
  summary: "List the organization's members",
  access: "account",
  params: orgPath,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(member, { maxItems: MAX_MEMBERS }) }),
  outcomes: { ok: 200 },
  errors: ["org_not_found"],
  audit: "member.listed",
});

export const memberUpdate = operation({
  name: "member_update",
  extension: "account",
  method: "PATCH",
  path: "/v1/orgs/{org_id}/members/{user_id}",
  summary: "Change a member's role",
  description:
    "By an owner or admin; only an owner makes owners, or changes one. An organization keeps at least one owner.",
  access: "account",
  wantsProof: true,
  params: memberPath,
  query: NONE,
  body: fields({ role }),
  output: member,
  outcomes: { ok: 200 },
  errors: ["org_not_found", "member_not_found", "insufficient_scope", "last_owner"],
  audit: "member.role_set",
  example: { body: { role: "admin" } },
});

export const memberRemove = operation({
  name: "member_remove",
  extension: "account",
  method: "DELETE",
  path: "/v1/orgs/{org_id}/members/{user_id}",
  summary: "Remove a member",
  description:
    "Their sessions in it end, the keys that they made, their applications, and all resources made by these that give access: `ended` counts them. Members may leave on their own.",
  access: "account",
  wantsProof: true,
  params: memberPath,
  query: NONE,
  body: null,
  output: fields({
    user_id: Type.String(),
    keys_revoked: Type.Integer({ description: "Those of applications are among them." }),
    sessions_ended: Type.Integer(),
    ended: endedMade,
  }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "member_not_found", "insufficient_scope", "last_owner"],
  audit: "member.removed",
});

export const invitationCreate = operation({
  name: "invitation_create",
  extension: "account",
  method: "POST",
  path: "/v1/orgs/{org_id}/invitations",
  summary: "Invite a person",
  description: "The answer has the link, which is valid for one person and 72 hours, and is shown only once.",
  access: "account",
  wantsProof: true,
  params: orgPath,
  query: NONE,
  body: fields({
    role,
    email: Type.Optional(
      Type.String({
        ...email,
        description: "Only this address can accept it; its ownership is not verified.",
      }),
    ),
  }),
  output: fields({
    ...invitation.properties,
    url: Type.String({ description: "The link to hand over." }),
    is_mailed: Type.Boolean({ description: "Whether an e-mail with the link is on its way." }),
  }),
  outcomes: { created: 201 },
  errors: ["org_not_found", "insufficient_scope", "quota_exceeded"],
  secretOutput: true,
  audit: "member.invited",
  example: { body: { role: "member", email: "ada@example.org" } },
});

export const invitationList = operation({
  name: "invitation_list",
  extension: "account",
  method: "GET",
  path: "/v1/orgs/{org_id}/invitations",
  summary: "List the pending invitations",
  access: "account",
  params: orgPath,
  query: NONE,
  body: null,
  output: fields({ items: Type.Array(invitation, { maxItems: MAX_INVITATIONS }) }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "insufficient_scope"],
  audit: "member.invitations_listed",
});

export const invitationDelete = operation({
  name: "invitation_delete",
  extension: "account",
  method: "DELETE",
  path: "/v1/orgs/{org_id}/invitations/{invitation_id}",
  summary: "Withdraw an invitation",
  access: "account",
  params: invitationPath,
  query: NONE,
  body: null,
  output: fields({ invitation_id: Type.String() }),
  outcomes: { ok: 200 },
  errors: ["org_not_found", "invitation_not_found", "insufficient_scope"],
  audit: "member.invitation_withdrawn",
});
