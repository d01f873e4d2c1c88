/** Page on which an owner deletes the organization, and sees the progress. */
import type { AccountRecord } from "../../../../shared/api/people/account.ts";
import { html } from "../../../core/markup.ts";
import { field, type Page, trouble } from "../layout.ts";
import { type Told, whoOf } from "./account.ts";

const countOf = (rooms: number) => (rooms === 1 ? "1 room" : `${rooms} rooms`);

export function endPage(
  account: AccountRecord,
  rooms: number,
  { problem = null }: Told = {},
): { page: Page; isEnding: boolean } {
  const who = whoOf(account);
  const own = account.organizations.find(({ org_id }) => org_id === account.org_id);
  const isEnding = (own?.ending_at ?? null) !== null;
  const going = html`<h1>Ending <bdi>${who.org}</bdi></h1><p role="status">${rooms === 0 ? "The last things are going." : html`<b>${countOf(rooms)}</b> left.`}</p><p class="muted">Keys, members and invitations have ended. This page looks again by itself; you can leave it. When all is gone, you are signed out.</p>`;
  const asked = html`<h1>End <bdi>${who.org}</bdi></h1>${trouble(problem)}<p>This cannot be undone. What ends:</p><ul><li>${countOf(rooms)}, with all sandboxes and drives</li><li>every API key, public SSH key and exposed port</li><li>every member's access, yours too, and every open invitation</li></ul><p class="muted">The audit and what was used are kept for their own time. Export what you need first: files on the drives are erased.</p>
<form method="post" action="/org/end" class="narrow">${field("org_name", "Name of the organization", { hint: `Type ${who.org} to confirm.` })}<button class="button bad">End this organization</button></form><p><a href="/org/members">Keep it</a></p>`;
  const notOwner = html`<h1>End <bdi>${who.org}</bdi></h1>${trouble(problem)}<p>Only an owner ends an organization. <a href="/org/members">Members</a> shows who that is; there you can also leave it.</p>`;
  const body = isEnding ? going : account.role === "owner" ? asked : notOwner;
  return { isEnding, page: { title: "End the organization", who, body } };
}
