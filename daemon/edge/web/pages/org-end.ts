/** Page on which an owner deletes the organization, and sees the progress. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { html } from "../../../core/markup.ts";
import { field, type Page, trouble } from "../layout.ts";
import { type FormReport, whoOf } from "./account.ts";

const countOf = (rooms: number) => (rooms === 1 ? "1 room" : `${rooms} rooms`);

export function endPage(
  account: AccountRecord,
  rooms: number,
  { problem = null }: FormReport = {},
): { page: Page; isEnding: boolean } {
  const who = whoOf(account);
  const own = account.organizations.find(({ org_id }) => org_id === account.org_id);
  const isEnding = (own?.ending_at ?? null) !== null;
  const going = html`<h1>Deleting <bdi>${who.org}</bdi></h1><p role="status">${rooms === 0 ? "Removing the last resources." : html`<b>${countOf(rooms)}</b> left.`}</p><p class="muted">Keys, memberships and invitations have ended. This page refreshes automatically; you can close it. When everything is deleted, you are signed out.</p>`;
  const confirmation = html`<h1>Delete <bdi>${who.org}</bdi></h1>${trouble(problem)}<p>This cannot be undone. This deletes:</p><ul><li>${countOf(rooms)}, with all sandboxes and drives</li><li>every API key, public SSH key and exposed port</li><li>every member's access, including yours, and every open invitation</li></ul><p class="muted">Audit records and usage are kept for their retention periods. Export files that you need first: the drives are erased.</p>
<form method="post" action="/org/end" class="narrow">${field("org_name", "Name of the organization", { hint: `Type ${who.org} to confirm.` })}<button class="button bad">Delete this organization</button></form><p><a href="/org/members">Cancel</a></p>`;
  const notOwner = html`<h1>Delete <bdi>${who.org}</bdi></h1>${trouble(problem)}<p>Only an owner can delete an organization. <a href="/org/members">Members</a> lists the owners; you can also leave the organization there.</p>`;
  const body = isEnding ? going : account.role === "owner" ? confirmation : notOwner;
  return { isEnding, page: { title: "Delete the organization", who, body } };
}
