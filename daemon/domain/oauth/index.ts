/**
 * Authorization server: people authorize applications, through a page or a code, and the applications authenticate with tokens. A grant is
 * a key of kind `oauth`, so that limits, audit, usage and revocation are those of keys.
 */
import type { Source } from "../../../shared/api/audit.ts";
import type { KeyId } from "../../../shared/ids.ts";
import type { Bound, Caller } from "../../core/call/operation.ts";
import { now } from "../../core/clock.ts";
import { loopTime, Pieces } from "../../core/loop/index.ts";
import { describeError, ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { appendAudit } from "../audit/index.ts";
import { getKey, isGood } from "../orgs/index.ts";
import { makeApplications } from "./applications.ts";
import { type AuthorizationRequest, readAuthorizationRequest } from "./authorization-request.ts";
import { type Asker, ClientMetadata } from "./client-metadata.ts";
import { Clients, type Registration, unusedBefore } from "./clients.ts";
import type { OAuthDeps } from "./deps.ts";
import { Devices } from "./devices.ts";
import { makeGrants } from "./grants.ts";
import { hashOf } from "./secrets.ts";
import {
  canRefresh,
  dropExpiredDevices,
  dropExpiredTokens,
  dropGrant,
  dropUnusedClients,
  getGrant,
  getToken,
  grantsAfter,
  isAwaited,
  prepareTokenLookup,
} from "./store.ts";
import type { GrantRow } from "./table.ts";
import { type Issued, Reused, tokensForCode, tokensForRefresh } from "./tokens.ts";

export { type AuthorizationRequest, only, SentBack } from "./authorization-request.ts";
export type { Asker } from "./client-metadata.ts";
export { DEVICE_SECONDS, POLL_SECONDS } from "./devices.ts";
export { applicationsMade } from "./made.ts";
export { oauthPersonal } from "./personal.ts";
export { isLoopback, placeOf } from "./redirects.ts";
export { Refusal } from "./refusal.ts";
export { hasGrant } from "./store.ts";
export type { Issued } from "./tokens.ts";

/** Source of an application's request. */
export interface From {
  ip: string | null;
  request_id: string;
}

export interface OAuth {
  operations: Bound[];
  /** Whether it has the form of one of our tokens, valid or not. */
  isToken(authorization: string): boolean;
  /** The caller of a token. Throws invalid_api_key, api_key_expired. */
  authenticate(authorization: string, source: Source): Caller;
  /** Parses an application's request at /authorize. Throws Refusal, SentBack once the redirect URI is known, and rate_limited. */
  read(query: URLSearchParams, asker: Asker): Promise<AuthorizationRequest>;
  /** Throws invalid_client_metadata, invalid_redirect_uri. */
  register(metadata: Record<string, unknown>): Promise<Registration>;
  devices: Pick<Devices, "begin" | "look">;
  /** Each throws Refusal. */
  tokens: {
    byCode(request: Parameters<typeof tokensForCode>[1], from: From): Promise<Issued>;
    byRefresh(request: Parameters<typeof tokensForRefresh>[1], from: From): Promise<Issued>;
    byDevice(request: { client_id: string; device_code: string }, from: From): Promise<Issued>;
  };
  /** Ends the grant of a token at its application's request; ignores an invalid token. */
  revoke(token: string, from: From): Promise<void>;
  /** Ends grants that no token or code can use any more, and deletes ended ones. Never rejects. */
  sweep(): Promise<void>;
}

/** Grants that are read together: a millisecond. */
const READ_TOGETHER = 100;

/** In pieces of the event loop. */
async function* allGrants(queries: Queries): AsyncGenerator<GrantRow> {
  const pieces = new Pieces(loopTime, "host", "grants.sweep");
  let page: GrantRow[];
  let after = "";
  do {
    page = grantsAfter(queries, after, READ_TOGETHER);
    for (const grant of page) {
      const turn = pieces.next();
      if (turn) await turn;
      yield grant;
    }
    after = page.at(-1)?.key_id ?? after;
  } while (page.length === READ_TOGETHER);
}

const BEARER = /^Bearer +(oat-\S+) *$/i;

export function makeOAuth({ database, changes, orgs, log, url, documents }: OAuthDeps): OAuth {
  const { queries } = database;
  const clients = new Clients(database, documents && new ClientMetadata(documents, log));
  const devices = new Devices(database, clients, url);
  const lookup = prepareTokenLookup(queries);

  const recordOf = (
    within: Queries,
    event: string,
    keyId: KeyId,
    from: From,
    details: Record<string, unknown> = {},
  ) => {
    const key = getKey(within, keyId);
    if (!key) return;
    appendAudit(within, {
      event,
      outcome: "success",
      at: now(),
      org_id: key.org_id,
      actor: { type: "key", id: keyId, name: key.name },
      source: "web",
      ...from,
      details: { grant_id: keyId, ...details },
    });
  };

  /** Ends a valid grant. */
  const end = async (keyId: KeyId, within: (queries: Queries) => void): Promise<void> => {
    const key = getKey(queries, keyId);
    if (!key || key.revoked_at !== null) return;
    try {
      await changes.revokeKey(keyId, (inside) => {
        within(inside);
        dropGrant(inside, keyId);
      });
    } catch (error) {
      // Another call has just ended it.
      if (!(error instanceof ServiceError) || error.code !== "key_not_found") throw error;
    }
    orgs.holds.look();
  };

  /** Issues tokens in one transaction; reuse of a code or token ends its grant. */
  const take = async (event: string | null, from: From, make: (within: Queries) => Issued): Promise<Issued> => {
    try {
      return await database.commit((within) => {
        const issued = make(within);
        if (event !== null) recordOf(within, event, issued.key_id, from);
        return issued;
      });
    } catch (error) {
      if (error instanceof Reused) {
        await end(error.key_id, (within) => recordOf(within, "oauth.reused", error.key_id, from));
      }
      throw error;
    }
  };

  return {
    operations: [
      ...makeGrants({ database, changes, orgs, url, clients }),
      ...makeApplications({ database, changes, orgs }),
    ],

    isToken: (authorization) => BEARER.test(authorization),

    authenticate: (authorization, source) => {
      const token = BEARER.exec(authorization)?.[1] ?? "";
      const token_sha256 = hashOf("oat-", token);
      const row = token_sha256 === null ? undefined : lookup.get({ token_sha256 });
      if (row?.kind !== "access") throw new ServiceError("invalid_api_key");
      if (row.expires_at <= now()) {
        throw new ServiceError("api_key_expired", { detail: "The access token has expired.", hint: "Refresh it." });
      }
      const caller = orgs.callerOfGrant(row.key_id);
      // A token is valid only for its audience.
      if (source !== "mcp" && getGrant(queries, row.key_id)?.audience !== "api") {
        throw new ServiceError("invalid_api_key", { detail: "The access token is valid for MCP only." });
      }
      return caller;
    },

    read: (query, asker) => readAuthorizationRequest(query, clients, url(), asker),
    register: (metadata) => clients.register(metadata),
    devices,

    tokens: {
      byCode: (request, from) => take("oauth.signed_in", from, (within) => tokensForCode(within, request)),
      byRefresh: (request, from) => take(null, from, (within) => tokensForRefresh(within, request)),
      byDevice: (request, from) => take("oauth.signed_in", from, (within) => devices.tokens(within, request)),
    },

    revoke: async (token, from) => {
      const hashed = hashOf("ort-", token) ?? hashOf("oat-", token);
      const row = hashed === null ? undefined : getToken(queries, hashed);
      if (row)
        await end(row.key_id, (within) => recordOf(within, "oauth.ended", row.key_id, from, { by: "application" }));
    },

    sweep: async () => {
      try {
        const at = now();
        for await (const { key_id, code_used_at, code_expires_at } of allGrants(queries)) {
          const key = getKey(queries, key_id);
          const isCodeOpen = code_used_at === null && (code_expires_at ?? "") > at;
          const canCome = isCodeOpen || canRefresh(queries, key_id, at) || isAwaited(queries, key_id, at);
          if (key && isGood(key) && canCome) continue;
          if (key && key.revoked_at === null) await end(key_id, () => {});
          else await database.commit((within) => dropGrant(within, key_id));
        }
        await database.commit((within) => {
          dropExpiredTokens(within, at);
          dropExpiredDevices(within, at);
          dropUnusedClients(within, unusedBefore(at));
        });
      } catch (error) {
        log.warn("failed to sweep grants of applications", { error: describeError(error) });
      }
    },
  };
}
