/** Start of a session at sign-in, and registration of its browser, which is known from then on. */
import type { OrgId, UserId } from "../../../../shared/ids.ts";
import { now } from "../../../core/clock.ts";
import type { Queries } from "../../../db/client.ts";
import { type RequestSource, record } from "../record.ts";
import { addBrowser, changeSession, isBrowserOf } from "../store.ts";
import { hashOf, makeSecret } from "./secrets.ts";
import { addSession } from "./sessions.ts";

/** Maximum number of remembered browsers of one user. */
const MAX_BROWSERS = 20;

/** Cookies for the browser, each returned now and never again. */
export interface SignedIn {
  session: string;
  /** Null if the browser was known before. */
  browser: string | null;
}

/** Within a transaction. The session of the request, of any user, ends. */
export function begin(
  queries: Queries,
  user: { user_id: UserId; name: string },
  orgId: OrgId,
  requestSource: RequestSource,
  by: string,
): SignedIn {
  if (requestSource.session_id !== null) changeSession(queries, requestSource.session_id, { ended_at: now() });
  const { secret, row } = addSession(queries, user.user_id, orgId, requestSource);
  record(queries, "auth.signed_in", user, orgId, requestSource, { by, session_id: row.session_id });
  return { session: secret, browser: rememberBrowser(queries, user.user_id, requestSource) };
}

function rememberBrowser(queries: Queries, userId: UserId, requestSource: RequestSource): string | null {
  if (browserOf(queries, userId, requestSource) !== null) return null;
  const { secret, sha256 } = makeSecret();
  addBrowser(queries, { secret_sha256: sha256, user_id: userId, created_at: now() }, MAX_BROWSERS);
  return secret;
}

/** The hash of the browser's secret if the user has signed in with it before; else null. */
export function browserOf(
  queries: Queries,
  userId: UserId,
  { browser }: Pick<RequestSource, "browser">,
): string | null {
  const sha256 = browser === null ? null : hashOf(browser);
  return sha256 !== null && isBrowserOf(queries, userId, sha256) ? sha256 : null;
}
