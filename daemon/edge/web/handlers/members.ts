/** Handlers of the members' page: roles, removals, invitations. */

import { applicationEnd, applicationList } from "../../../../shared/api/grants.ts";
import {
  invitationCreate,
  invitationDelete,
  invitationList,
  memberList,
  memberRemove,
  memberUpdate,
  type Role,
} from "../../../../shared/api/people/members.ts";
import type { FormReport } from "../layout.tsx";
import { cursorOf, MAX_ROWS, pageOf } from "../list-page.tsx";
import { membersPage, type NewLink } from "../pages/members.tsx";
import type { WebContext } from "../request-context.ts";
import { accountOf, after, type HandlerDeps, type Handlers, inside } from "./handler.ts";

const org_id = "self";

export function memberHandlers(deps: HandlerDeps): Handlers {
  const members = async (visit: WebContext, link: NewLink | null, report: FormReport = {}) => {
    const list = await visit.call(memberList, { org_id });
    const open = await visit.call(invitationList, { org_id });
    const cursor = cursorOf(visit, "applications");
    const applications = open.ok
      ? await visit.call(applicationList, { org_id, limit: MAX_ROWS, ...(cursor && { cursor }) })
      : null;
    return membersPage(
      await accountOf(visit),
      {
        members: pageOf(list.ok ? list.body.items : [], ({ user_id }) => user_id, cursorOf(visit, "members")),
        invitations: open.ok
          ? pageOf(open.body.items, ({ invitation_id }) => invitation_id, cursorOf(visit, "invitations"))
          : null,
        applications: applications?.ok ? applications.body : null,
        link,
        once: crypto.randomUUID(),
      },
      report,
    );
  };

  return {
    "/org/members": inside(deps, async (visit) => {
      if (!visit.isPost) return { page: await members(visit, null) };
      const { field } = visit;
      const page = (report: FormReport) => members(visit, null, report);
      const user_id = field("user_id");
      switch (field("do")) {
        case "role": {
          const set = await visit.call(memberUpdate, { org_id, user_id, role: field("role") as Role });
          return await after(visit, set, "Role changed. Keys with more access were revoked.", page);
        }
        case "remove": {
          const removed = await visit.call(memberRemove, { org_id, user_id });
          if (removed.ok && user_id === visit.caller?.key_id) return { to: "/signin" };
          return await after(
            visit,
            removed,
            "Member removed. Their keys and sessions in this organization have ended.",
            page,
          );
        }
        case "application": {
          const ended = await visit.call(applicationEnd, { org_id, grant_id: field("grant_id") });
          return await after(
            visit,
            ended,
            "Access revoked, and everything that depends on the application has ended.",
            page,
          );
        }
        case "withdraw": {
          const withdrawal = await visit.call(invitationDelete, { org_id, invitation_id: field("invitation_id") });
          return await after(visit, withdrawal, "Invitation withdrawn.", page);
        }
        default: {
          const email = field("email").trim();
          const invitation = { org_id, role: field("role") as Role, ...(email ? { email } : {}) };
          const made = await visit.call(invitationCreate, invitation, field("once") || null);
          if (!made.ok) return await after(visit, made, null, page);
          // A reloaded page does not show the link again.
          if (made.replayed) return { to: "/org/members" };
          const { url, email: to, is_mailed } = made.body;
          return { page: await members(visit, { url, mailedTo: is_mailed ? to : null }) };
        }
      }
    }),
  };
}
