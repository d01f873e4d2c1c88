/** Page of an organization's members, their applications, and invitations. */

import type { ApplicationRecord } from "../../../../shared/api/grants.ts";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { type InvitationRecord, type MemberRecord, ROLES } from "../../../../shared/api/people/members.ts";
import { html } from "../../../core/markup.ts";
import { choice, hidden, moment, type Page, sure, tabs, trouble } from "../layout.ts";
import { type FormReport, whoOf } from "./account.ts";

const SAYS: Record<(typeof ROLES)[number], string> = {
  owner: "owner: full access",
  admin: "admin: all except billing",
  member: "member: own API keys",
  viewer: "viewer: read only",
};

export interface NewLink {
  url: string;
  /** Recipient of the e-mail with it; null: none is sent. */
  mailedTo: string | null;
}

interface ShownMembers {
  members: readonly MemberRecord[];
  /** Null: this user may not see the invitations. */
  invitations: readonly InvitationRecord[] | null;
  /** The newest applications, and the cursor of more. Null: this user may not see them. */
  applications: { items: readonly ApplicationRecord[]; next_cursor: string | null } | null;
  /** Link of an invitation just created, which is shown only once. */
  link: NewLink | null;
  /** ID of the next form, so that it is accepted once. */
  once: string;
}

export function membersPage(
  account: AccountRecord,
  { members, invitations, applications, link, once }: ShownMembers,
  { problem = null, done = null, typed }: FormReport = {},
): Page {
  const isKeeper = invitations !== null;
  const given = ROLES.filter((role) => account.role === "owner" || role !== "owner");
  const rows = members.map((member) => {
    const isSelf = member.user_id === account.user_id;
    const mayChange = isKeeper && !isSelf && (account.role === "owner" || member.role !== "owner");
    const role = mayChange
      ? html`<form method="post" action="/org/members" class="one-line">${hidden([
          ["do", "role"],
          ["user_id", member.user_id],
        ])}<select name="role" aria-label="Role of ${member.name}">${given.map((each) => (each === member.role ? html`<option selected>${each}</option>` : html`<option>${each}</option>`))}</select><button class="link">Set</button></form>`
      : member.role;
    const end =
      isSelf || mayChange
        ? sure(
            isSelf ? "Leave" : "Remove",
            isSelf ? whoOf(account).org : member.name,
            html`<form method="post" action="/org/members">${hidden([
              ["do", "remove"],
              ["user_id", member.user_id],
            ])}<button class="link">${isSelf ? "Leave and revoke my keys" : "Remove and revoke their keys"}</button></form>`,
          )
        : "";
    return html`<tr><td data-label="Name"><bdi>${member.name}</bdi>${isSelf ? html` <span class="muted">you</span>` : ""}</td><td data-label="E-mail" class="unbroken"><bdi>${member.email}</bdi></td><td data-label="Role">${role}</td><td data-label="Joined">${moment(member.created_at)}</td><td class="num">${end}</td></tr>`;
  });
  const open = (invitations ?? []).map(
    (each) =>
      html`<tr><td data-label="For"><bdi>${each.email ?? "anyone with the link"}</bdi></td><td data-label="Role">${each.role}</td><td data-label="Expires">${moment(each.expires_at)}</td><td class="num">${sure(
        "Withdraw",
        `the invitation for ${each.email ?? "anyone with the link"}`,
        html`<form method="post" action="/org/members">${hidden([
          ["do", "withdraw"],
          ["invitation_id", each.invitation_id],
        ])}<button class="link">Withdraw invitation</button></form>`,
      )}</td></tr>`,
  );
  const letIn = (applications?.items ?? []).map(
    (each) =>
      html`<tr><td data-label="Application"><bdi>${each.client_name}</bdi></td><td data-label="Member"><bdi>${each.user_name}</bdi></td><td data-label="Authorized">${moment(each.created_at)}</td><td data-label="Last used">${moment(each.last_used_at)}</td><td class="num">${sure(
        "Revoke",
        each.client_name,
        html`<form method="post" action="/org/members">${hidden([
          ["do", "application"],
          ["grant_id", each.grant_id],
        ])}<button class="link">Revoke access</button></form>`,
      )}</td></tr>`,
  );
  const more = applications?.next_cursor
    ? html`<p class="muted">More applications: <code>roomd application list</code></p>`
    : "";
  const signedIn = letIn.length
    ? html`<h2>Applications of members</h2><div class="scroll"><table><thead><tr><th>Application</th><th>Member</th><th>Authorized</th><th>Last used</th><td></td></tr></thead><tbody>${letIn}</tbody></table></div>${more}`
    : "";
  const shown = link
    ? html`<div class="prompt"><p><b>Invitation link</b> <span class="muted">It works for one person within 72 hours. Copy it now: it is not shown again.</span></p><pre id="link">${link.url}</pre>${link.mailedTo === null ? "" : html`<p class="muted">An e-mail with the link is on its way to <bdi>${link.mailedTo}</bdi>.</p>`}<button type="button" class="button main" data-copy="link" hidden>Copy link</button></div>`
    : "";
  const invite = isKeeper
    ? html`<h2>Invite a member</h2><form method="post" action="/org/members" class="row">${hidden([
        ["do", "invite"],
        ["once", once],
      ])}
<p class="field"><label for="email">E-mail (optional: only this address can accept)</label><input id="email" name="email" type="email" value="${typed?.get("email") ?? ""}" autocomplete="off"></p>${choice(
        "role",
        "Role",
        given.map((role) => [role, SAYS[role]]),
        "member",
      )}<button class="button main">Create invitation link</button></form>
${open.length ? html`<h2>Open invitations</h2><div class="scroll"><table><thead><tr><th>For</th><th>Role</th><th>Expires</th><td></td></tr></thead><tbody>${open}</tbody></table></div>` : ""}`
    : "";
  const end =
    account.role === "owner"
      ? html`<h2>Delete the organization</h2><p><a href="/org/end">Delete this organization</a> <span class="muted">with all its rooms</span></p>`
      : "";
  return {
    title: "Members",
    who: whoOf(account),
    body: html`<h1>Account</h1>${tabs("/org/members")}${trouble(problem)}${done === null ? "" : html`<p class="done" role="status">${done}</p>`}${shown}<h2>Members</h2><div class="scroll"><table><thead><tr><th>Name</th><th>E-mail</th><th>Role</th><th>Joined</th><td></td></tr></thead><tbody>${rows}</tbody></table></div>${signedIn}${invite}${end}`,
  };
}
