/** Parses authorization requests of applications: at /authorize with a browser, or from a device without one. */

import type { Scope } from "../../../shared/api/contract.ts";
import { GRANT_SCOPES } from "../../../shared/api/grants.ts";
import { originsOf } from "../../core/config/people-url.ts";
import type { Asker } from "./client-metadata.ts";
import type { Clients } from "./clients.ts";
import type { Client } from "./metadata.ts";
import { isLoopback, isNamed } from "./redirects.ts";
import { type OAuthError, Refusal } from "./refusal.ts";
import type { Audience } from "./table.ts";

export interface AuthorizationRequest {
  client: Client;
  redirect_uri: string;
  state: string | null;
  code_challenge: string;
  scopes: readonly Scope[];
  audience: Audience;
  /** Redirect URL if the user denies the request. */
  refused: string;
}

/**
 * Error response to the application by redirect. Used only if the redirect leads to a program on the person's own computer: otherwise any
 * registered application could make our address an open redirect.
 */
export class SentBack extends Refusal {
  readonly to: string;

  constructor(to: string, error: OAuthError, description: string) {
    super(error, description);
    this.to = to;
  }
}

const CHALLENGE = /^[\w-]{43}$/;
const MAX_STATE = 2048;

/** Throws Refusal, which only people see; SentBack once the application's redirect URI is known; and rate_limited. */
export async function readAuthorizationRequest(
  query: URLSearchParams,
  clients: Clients,
  url: string,
  asker: Asker,
): Promise<AuthorizationRequest> {
  const one = (name: string) => only(query, name);
  const client = await clients.find(one("client_id") ?? "", asker);
  const { redirect_uris: named } = client;
  const redirect_uri = one("redirect_uri") ?? (named.length === 1 ? named[0] : undefined);
  if (redirect_uri === undefined)
    throw new Refusal(
      "invalid_request",
      "redirect_uri is missing, and the application has not registered exactly one.",
    );
  if (!isNamed(named, redirect_uri)) {
    throw new Refusal("invalid_redirect_uri", "redirect_uri is not among the URIs that the application registered.");
  }
  const state = one("state") ?? null;
  const refusedAt = (error: OAuthError, description: string) =>
    backTo({ redirect_uri, state }, url, { error, error_description: description });
  const back = (error: OAuthError, description: string) =>
    isLoopback(redirect_uri)
      ? new SentBack(refusedAt(error, description), error, description)
      : new Refusal(error, description);
  if (state !== null && state.length > MAX_STATE) throw back("invalid_request", "state is too long.");
  if (one("response_type") !== "code") throw back("unsupported_response_type", "response_type must be code.");
  if (one("code_challenge_method") !== "S256") throw back("invalid_request", "code_challenge_method must be S256.");
  const code_challenge = one("code_challenge") ?? "";
  if (!CHALLENGE.test(code_challenge)) throw back("invalid_request", "code_challenge must be 43 characters.");
  try {
    const [scopes, audience] = [readScopes(one("scope")), readAudience(one("resource"), url)];
    const refused = refusedAt("access_denied", "The user denied the request.");
    return { client, redirect_uri, state, code_challenge, scopes, audience, refused };
  } catch (error) {
    if (error instanceof Refusal) throw back(error.error, error.description);
    throw error;
  }
}

/** A parameter that must not be repeated (RFC 6749, 3.1). Throws invalid_request. */
export function only(query: URLSearchParams, name: string): string | undefined {
  const all = query.getAll(name);
  if (all.length > 1) throw new Refusal("invalid_request", `${name} is given more than once.`);
  // An empty parameter counts as absent.
  return all[0] || undefined;
}

/** Redirect URL of a response. `iss` identifies the issuer to the application (RFC 9207). */
export function backTo(
  { redirect_uri, state }: Pick<AuthorizationRequest, "redirect_uri" | "state">,
  iss: string,
  answer: Record<string, string>,
): string {
  const url = new URL(redirect_uri);
  for (const [name, value] of Object.entries({ ...answer, ...(state === null ? {} : { state }), iss })) {
    url.searchParams.set(name, value);
  }
  return url.href;
}

/** Scopes that applications may be granted: all if `scope` is absent; unknown ones are left out. Throws invalid_scope. */
export function readScopes(scope: string | undefined): readonly Scope[] {
  if (scope === undefined) return GRANT_SCOPES;
  const requested = scope.split(" ");
  const known = GRANT_SCOPES.filter((each) => requested.includes(each));
  if (known.length === 0) throw new Refusal("invalid_scope", "None of the scopes is known to this service.");
  return known;
}

const MCP_PATHS = ["/mcp", "/mcp/small", "/mcp/all"];

/** On loopback, each name of the service is accepted. Throws invalid_target. */
export function readAudience(resource: string | undefined, url: string): Audience {
  if (resource === undefined) return "mcp";
  const { pathname } = new URL(url);
  const bases = originsOf(url).map((origin) => origin + pathname.replace(/\/$/, ""));
  const base = bases.find((each) => resource === each || resource.startsWith(`${each}/`));
  const path = base === undefined ? null : resource.slice(base.length);
  if (path !== null && MCP_PATHS.includes(path)) return "mcp";
  if (path === "" || path === "/") return "api";
  throw new Refusal("invalid_target", `This service does not serve the resource; ${url}/mcp is.`);
}
