/** Audit records of sign-in, and of people's actions without an operation in the contract. */
import type { OrgId, SessionId, UserId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import type { From } from "./sessions/sessions.ts";

/** Source of a request, and its cookies. */
export interface RequestSource extends From {
  request_id: string;
  /** Network of the address: the owner of one IPv6 address usually has all of its network. */
  network: string;
  /** Secret of a browser in which a user has signed in; null without one. */
  browser: string | null;
  /** Identifier of a browser until sign-in; null before it has one. */
  visitor: string | null;
  /** The session of the request: it ends if another one starts. */
  session_id: SessionId | null;
}

export function record(
  queries: Queries,
  event: string,
  user: { user_id: UserId; name: string },
  org_id: OrgId,
  { ip, request_id }: Pick<RequestSource, "ip" | "request_id">,
  details: Record<string, unknown>,
): void {
  const actor = { type: "user", id: user.user_id, name: user.name };
  appendAudit(queries, { event, outcome: "success", at: now(), org_id, actor, source: "web", request_id, ip, details });
}
