/** Owns what the record says of people who sign in, and of what they do without an operation of the list. */
import type { OrgId, SessionId, UserId } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import type { From } from "./sessions.ts";

/** From where a request comes, and what it carries. */
export interface Asked extends From {
  request_id: string;
  /** Of the address: who has one IPv6 address usually has all of its network. */
  network: string;
  /** The secret of a browser that somebody has signed in by; null without one. */
  browser: string | null;
  /** What a browser is known by until somebody signs in; null before it has any. */
  visitor: string | null;
  /** The session that the request came by: it ends where another begins. */
  session_id: SessionId | null;
}

export function record(
  queries: Queries,
  event: string,
  user: { user_id: UserId; name: string },
  org_id: OrgId,
  { ip, request_id }: Pick<Asked, "ip" | "request_id">,
  details: Record<string, unknown>,
): void {
  const actor = { type: "user", id: user.user_id, name: user.name };
  appendAudit(queries, { event, outcome: "success", at: now(), org_id, actor, source: "web", request_id, ip, details });
}
