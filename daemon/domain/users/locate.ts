/** Resolves ids of accounts for a caller: a member of its organization, or a thing of the calling person's own. */
import type { LinkId, SessionId, UserId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { listIdentities } from "./identities/identities-store.ts";
import { listPasskeys } from "./sign-in/passkeys-store.ts";
import { getMembership, getSession, goodLink } from "./store.ts";

type OfPeople = "account" | "member" | "session" | "invitation" | "passkey" | "identity";

/** Null if the caller may not see it, as for an unknown id. A key sees members if it may read the audit, which names actors. */
export function locateOfPeople(queries: Queries, caller: Caller, id: string): OfPeople | null {
  const { org_id, session } = caller;
  if (id.startsWith("usr_")) {
    if (session && id === caller.key_id) return "account";
    const maySee = session !== undefined || caller.scopes.some((each) => SEES_MEMBERS.includes(each));
    return maySee && getMembership(queries, org_id, id as UserId) ? "member" : null;
  }
  if (!session) return null;
  const userId = caller.key_id as string as UserId;
  if (id.startsWith("ses_")) {
    const row = getSession(queries, id as SessionId);
    return row?.user_id === userId && row.ended_at === null ? "session" : null;
  }
  if (id.startsWith("lnk_")) {
    const link = KEEPERS.includes(session.role) ? goodLink(queries, id as LinkId, now()) : undefined;
    return link?.kind === "invitation" && link.org_id === org_id ? "invitation" : null;
  }
  if (id.startsWith("pky_"))
    return listPasskeys(queries, userId).some((each) => each.passkey_id === id) ? "passkey" : null;
  return listIdentities(queries, userId).some((each) => each.identity_id === id) ? "identity" : null;
}

const SEES_MEMBERS: readonly string[] = ["audit:read", "org:admin"];
const KEEPERS: readonly string[] = ["owner", "admin"];
