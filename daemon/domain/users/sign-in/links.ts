/** Single-use links: for setup of the service, account recovery, invitation to an organization, and verification of an address. */
import { LRUCache } from "lru-cache";
import { INVITATION_SECONDS } from "../../../../shared/api/people/members.ts";
import { type LinkId, newId } from "../../../../shared/ids.ts";
import { after, now } from "../../../core/clock.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Queries } from "../../../db/client.ts";
import { hashOf, makeSecret } from "../sessions/secrets.ts";
import { changeToken, goodLink, insertLink, linkByHash } from "../store.ts";
import type { LinkRow } from "../table.ts";

/** Limit on shown links with waiting e-mails. */
const MAX_SHOWN = 10_000;
const DAY_SECONDS = 86_400;
const SECONDS: Record<LinkRow["kind"], number> = {
  setup: DAY_SECONDS,
  user: DAY_SECONDS,
  invitation: INVITATION_SECONDS,
  request: DAY_SECONDS,
  signup: 3 * DAY_SECONDS,
  email: DAY_SECONDS,
};
/** Pages to which links lead. */
const PAGES: Record<Exclude<LinkRow["kind"], "invitation">, string> = {
  setup: "/setup",
  user: "/setup",
  request: "/signup",
  signup: "/signup",
  email: "/verify",
};

type NewLink = Pick<LinkRow, "kind"> &
  Partial<Pick<LinkRow, "user_id" | "org_id" | "role" | "email">> & {
    maker: { type: string; id: string };
    /** An invalid link, deleted with the next one: the same work as making one, for a request that gets no link. */
    isVoid?: boolean;
  };

/** `token` is the only copy. */
export function addLink(
  queries: Queries,
  { kind, maker, isVoid = false, ...about }: NewLink,
): { token: string; row: LinkRow } {
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
    used_at: isVoid ? created_at : null,
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

/** Path of a link below the service's URL. The token is in the fragment, which no server logs, except for an invitation. */
export function pathOf(kind: LinkRow["kind"], token: string): string {
  return kind === "invitation" ? `/invite/${token}` : `${PAGES[kind]}#${token}`;
}

/** Links in e-mails. Each token is created when its e-mail is sent, except for links that were shown as well, recently. */
export class EmailLinks {
  readonly #shown = new LRUCache<LinkId, string>({ max: MAX_SHOWN });

  /** The path has been handed out already. Within a transaction. */
  show(linkId: LinkId, path: string): void {
    this.#shown.set(linkId, path);
  }

  /** Within a transaction: the path for the e-mail; null if the link is no longer valid. */
  relink(queries: Queries, linkId: LinkId): string | null {
    const shown = this.#shown.peek(linkId);
    if (shown !== undefined) return goodLink(queries, linkId, now()) ? shown : null;
    const { secret, sha256 } = makeSecret();
    const row = changeToken(queries, linkId, sha256, now());
    return row ? pathOf(row.kind, secret) : null;
  }
}
