/** Owns links that let somebody in once: to set the service up, to come back without a password, and into an organization. */
import { INVITATION_SECONDS } from "../../../shared/api/members.ts";
import { newId } from "../../../shared/ids.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { hashOf, makeSecret } from "./secrets.ts";
import { insertLink, linkByHash } from "./store.ts";
import type { LinkRow } from "./table.ts";

const SECONDS: Record<LinkRow["kind"], number> = { setup: 86_400, user: 86_400, invitation: INVITATION_SECONDS };

type NewLink = Pick<LinkRow, "kind"> &
  Partial<Pick<LinkRow, "user_id" | "org_id" | "role" | "email">> & { maker: { type: string; id: string } };

/** `token` is the only copy there will ever be. */
export function addLink(queries: Queries, { kind, maker, ...about }: NewLink): { token: string; row: LinkRow } {
  const { secret, sha256 } = makeSecret();
  const created_at = now();
  const row: LinkRow = {
    link_id: newId("lnk"),
    token_sha256: sha256,
    kind,
    user_id: about.user_id ?? null,
    org_id: about.org_id ?? null,
    role: about.role ?? null,
    email: about.email ?? null,
    created_by_type: maker.type,
    created_by_id: maker.id,
    created_at,
    expires_at: after(created_at, SECONDS[kind]),
    used_at: null,
  };
  insertLink(queries, row);
  return { token: secret, row };
}

/** Throws link_not_found. */
export function requireLink(queries: Queries, token: string, kinds: readonly LinkRow["kind"][]): LinkRow {
  const sha256 = hashOf(token);
  const row = sha256 === null ? undefined : linkByHash(queries, sha256);
  if (!row || !kinds.includes(row.kind) || row.used_at !== null || row.expires_at <= now()) {
    throw new ServiceError("link_not_found");
  }
  return row;
}

/** Where a link leads, below the service's URL. What lets in is behind the #, which no server's log has, but for an invitation's. */
export function pathOf(kind: LinkRow["kind"], token: string): string {
  return kind === "invitation" ? `/invite/${token}` : `/setup#${token}`;
}
