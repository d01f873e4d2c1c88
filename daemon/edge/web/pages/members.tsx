/** Page of an organization's members, their applications, and invitations. */

import type { ApplicationRecord } from "../../../../shared/api/grants.ts";
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { type InvitationRecord, type MemberRecord, ROLES } from "../../../../shared/api/people/members.ts";
import { Moment } from "../../../web/components/static.tsx";
import { ACTIONS, Table } from "../../../web/components/table.tsx";
import { Confirmed, CopyOf, Field, Post, Select, Submit } from "../components/forms.tsx";
import type { FormReport, Page } from "../layout.tsx";
import { type ListPage, More } from "../list-page.tsx";
import { whoOf } from "./account.tsx";

const PATH = "/org/members";
const CLASSES = { "E-mail": "unbroken", [ACTIONS]: "num" };

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
  members: ListPage<MemberRecord>;
  /** Null: this user may not see the invitations. */
  invitations: ListPage<InvitationRecord> | null;
  /** Null: this user may not see them. */
  applications: ListPage<ApplicationRecord> | null;
  /** Link of an invitation just created, which is shown only once. */
  link: NewLink | null;
  /** ID of the next form, so that it is accepted once. */
  once: string;
}

function Invitation({ of: { url, mailedTo } }: { of: NewLink }) {
  return (
    <div class="prompt">
      <p>
        <b>Invitation link</b>{" "}
        <span class="muted">It works for one person within 72 hours. Copy it now: it is not shown again.</span>
      </p>
      <pre id="link">{url}</pre>
      {mailedTo === null ? null : (
        <p class="muted">
          An e-mail with the link is on its way to <bdi>{mailedTo}</bdi>.
        </p>
      )}
      <CopyOf id="link" label="Copy link" look="main" />
    </div>
  );
}

function RoleOf({ member: { user_id, name, role }, given }: { member: MemberRecord; given: readonly string[] }) {
  return (
    <Post to={PATH} class="one-line" fields={{ do: "role", user_id }}>
      <select name="role" aria-label={`Role of ${name}`} value={role}>
        {given.map((each) => (
          <option key={each} value={each}>
            {each}
          </option>
        ))}
      </select>
      <Submit look="link">Set</Submit>
    </Post>
  );
}

export function membersPage(
  account: AccountRecord,
  { members, invitations, applications, link, once }: ShownMembers,
  report: FormReport = {},
): Page {
  const who = whoOf(account);
  const given = ROLES.filter((role) => account.role === "owner" || role !== "owner");
  const rows = members.items.map((member) => {
    const { user_id, name, email, role } = member;
    const isSelf = user_id === account.user_id;
    const mayChange = invitations !== null && !isSelf && (account.role === "owner" || role !== "owner");
    const remove = { to: PATH, fields: { do: "remove", user_id } };
    return {
      key: user_id,
      cells: {
        Name: (
          <>
            <bdi>{name}</bdi> {isSelf ? <span class="muted">you</span> : null}
          </>
        ),
        "E-mail": <bdi>{email}</bdi>,
        Role: mayChange ? <RoleOf member={member} given={given} /> : role,
        Joined: <Moment at={member.created_at} />,
        [ACTIONS]: isSelf ? (
          <Confirmed label="Leave" of={who.org} does="Leave and revoke my keys" {...remove} />
        ) : mayChange ? (
          <Confirmed label="Remove" of={name} does="Remove and revoke their keys" {...remove} />
        ) : null,
      },
    };
  });
  const grants = (applications?.items ?? []).map(({ grant_id, client_name, user_name, created_at, last_used_at }) => ({
    key: grant_id,
    cells: {
      Application: <bdi>{client_name}</bdi>,
      Member: <bdi>{user_name}</bdi>,
      Authorized: <Moment at={created_at} />,
      "Last used": <Moment at={last_used_at} />,
      [ACTIONS]: (
        <Confirmed
          label="Revoke"
          of={client_name}
          to={PATH}
          fields={{ do: "application", grant_id }}
          does="Revoke access"
        />
      ),
    },
  }));
  const open = (invitations?.items ?? []).map(({ invitation_id, email, role, expires_at }) => ({
    key: invitation_id,
    cells: {
      For: <bdi>{email ?? "anyone with the link"}</bdi>,
      Role: role,
      Expires: <Moment at={expires_at} />,
      [ACTIONS]: (
        <Confirmed
          label="Withdraw"
          of={`the invitation for ${email ?? "anyone with the link"}`}
          to={PATH}
          fields={{ do: "withdraw", invitation_id }}
          does="Withdraw invitation"
        />
      ),
    },
  }));
  return {
    title: "Members",
    who,
    at: PATH,
    report,
    body: (
      <>
        {link ? <Invitation of={link} /> : null}
        <h2>Members</h2>
        <Table classes={CLASSES} rows={rows} />
        <More at={PATH} list="members" after={members.next_cursor} />
        {grants.length > 0 ? (
          <>
            <h2>Applications of members</h2>
            <Table classes={CLASSES} rows={grants} />
            <More at={PATH} list="applications" after={applications?.next_cursor} />
          </>
        ) : null}
        {invitations === null ? null : (
          <>
            <h2>Invite a member</h2>
            <Post to={PATH} class="row" fields={{ do: "invite", once }}>
              <Field
                name="email"
                label="E-mail (optional: only this address can accept)"
                type="email"
                value={report.typed?.get("email")}
                isOptional
              />
              <Select name="role" label="Role" options={given.map((role) => [role, SAYS[role]])} chosen="member" />
              <Submit look="main">Create invitation link</Submit>
            </Post>
          </>
        )}
        {open.length > 0 ? (
          <>
            <h2>Open invitations</h2>
            <Table classes={CLASSES} rows={open} />
            <More at={PATH} list="invitations" after={invitations?.next_cursor} />
          </>
        ) : null}
        {account.role === "owner" ? (
          <>
            <h2>Delete the organization</h2>
            <p>
              <a href="/org/end">Delete this organization</a> <span class="muted">with all its rooms</span>
            </p>
          </>
        ) : null}
      </>
    ),
  };
}
