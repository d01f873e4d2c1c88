/** Page on which an owner deletes the organization, and sees the progress. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { Field, Post, Submit } from "../components/forms.tsx";
import type { FormReport, Page } from "../layout.tsx";
import { whoOf } from "./account.tsx";

const countOf = (rooms: number) => (rooms === 1 ? "1 room" : `${rooms} rooms`);

export function endPage(
  account: AccountRecord,
  rooms: number,
  report: FormReport = {},
): { page: Page; isEnding: boolean } {
  const who = whoOf(account);
  const own = account.organizations.find(({ org_id }) => org_id === account.org_id);
  const isEnding = (own?.ending_at ?? null) !== null;
  const going = (
    <>
      <p role="status">
        {rooms === 0 ? (
          "Removing the last resources."
        ) : (
          <>
            <b>{countOf(rooms)}</b> left.
          </>
        )}
      </p>
      <p class="muted">
        Keys, memberships and invitations have ended. This page refreshes automatically; you can close it. When
        everything is deleted, you are signed out.
      </p>
    </>
  );
  const confirmation = (
    <>
      <p>This cannot be undone. This deletes:</p>
      <ul>
        <li>{countOf(rooms)}, with all sandboxes and drives</li>
        <li>every API key, public SSH key and exposed port</li>
        <li>every member's access, including yours, and every open invitation</li>
      </ul>
      <p class="muted">
        Audit records and usage are kept for their retention periods. Export files that you need first: the drives are
        erased.
      </p>
      <Post to="/org/end" class="narrow">
        <Field name="org_name" label="Name of the organization" hint={`Type ${who.org} to confirm.`} />
        <Submit look="bad">Delete this organization</Submit>
      </Post>
      <p>
        <a href="/org/members">Cancel</a>
      </p>
    </>
  );
  const notOwner = (
    <p>
      Only an owner can delete an organization. <a href="/org/members">Members</a> lists the owners; you can also leave
      the organization there.
    </p>
  );
  return {
    isEnding,
    page: {
      title: "Delete the organization",
      who,
      heading: (
        <>
          {isEnding ? "Deleting" : "Delete"} <bdi>{who.org}</bdi>
        </>
      ),
      report: isEnding ? {} : report,
      body: isEnding ? going : account.role === "owner" ? confirmation : notOwner,
    },
  };
}
