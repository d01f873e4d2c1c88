/**
 * OpenID Connect client of the external issuer: the URL to send the browser to, and the identity of a returning user. The issuer's
 * responses are limited in time and size, and accepted only with its signature, for this client and this browser.
 */
import * as oauth from "oauth4webapi";
import { monotonicMs, timeoutSignal } from "../../../core/clock.ts";
import type { Config } from "../../../core/config/config.ts";
import { ConfigError } from "../../../core/config/config.ts";
import { secretIn } from "../../../core/config/secret-file.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { type GivenRole, type GroupRoles, readGroupRoles } from "./groups.ts";

const TIMEOUT_MS = 10_000;
const MAX_BYTES = 256 * 1024;
/** Cache lifetime of the issuer's metadata. */
const KNOWN_MS = 3_600_000;
const CLOCK_SECONDS = 30;
const LOOPBACK = /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/;

/** Membership that sign-in may create; null: none. */
interface Welcome {
  org_id: string;
  /** Role of a person in no group that gives another; null: no access. */
  role: GivenRole | null;
  groups: GroupRoles;
}

export interface OidcPlan {
  issuer: URL;
  client_id: string;
  client_secret: string;
  /** On the button. */
  name: string;
  scopes: string;
  /** Accepted domains of addresses; empty: all. */
  domains: readonly string[];
  welcome: Welcome | null;
  groupsClaim: string;
}

/** Null if it is not configured. Throws ConfigError. */
export function planOidc(config: Config): OidcPlan | null {
  const text = config["oidc.issuer"];
  if (text === "") return null;
  const issuer = URL.parse(text);
  if (!issuer || (issuer.protocol !== "https:" && !(issuer.protocol === "http:" && LOOPBACK.test(issuer.hostname)))) {
    throw new ConfigError(`oidc.issuer = ${JSON.stringify(text)}: must be an https:// URL`);
  }
  const { "oidc.client_id": client_id, "oidc.role": role } = config;
  if (client_id === "") throw new ConfigError("oidc.client_id is missing: oidc.issuer needs it");
  const groups = readGroupRoles(config["oidc.group_roles"]);
  const isWelcome = role !== "none" || groups.size > 0;
  if (isWelcome && config["oidc.org"] === "") {
    throw new ConfigError("oidc.org is missing: oidc.role and oidc.group_roles need it");
  }
  return {
    issuer,
    client_id,
    client_secret: secretIn(config, "oidc.client_secret_file") ?? "",
    name: config["oidc.name"],
    scopes: config["oidc.scopes"],
    domains: config["oidc.domains"]
      .toLowerCase()
      .split(",")
      .map((each) => each.trim())
      .filter(Boolean),
    welcome: isWelcome ? { org_id: config["oidc.org"], role: role === "none" ? null : role, groups } : null,
    groupsClaim: config["oidc.groups_claim"],
  };
}

/** Identity that the issuer vouches for. */
export interface Vouched {
  issuer: string;
  subject: string;
  /** Only if the issuer declares it as verified. */
  email: string | null;
  name: string;
  /** Null if the issuer reports no groups claim. */
  groups: readonly string[] | null;
}

/** Values bound to the browser that was redirected; no other browser has them. */
export interface Departure {
  state: string;
  verifier: string;
  nonce: string;
  redirect_uri: string;
}

export class OidcClient {
  readonly plan: OidcPlan;
  #known: { server: oauth.AuthorizationServer; until: number } | null = null;
  /** The request in progress, shared by all callers that wait for it. */
  #asking: Promise<oauth.AuthorizationServer> | null = null;

  constructor(plan: OidcPlan) {
    this.plan = plan;
  }

  /** URL to send the browser to. Throws upstream_failed. */
  async leave({ state, verifier, nonce, redirect_uri }: Departure): Promise<string> {
    const { authorization_endpoint } = await this.#told(() => this.#server());
    if (authorization_endpoint === undefined) throw failed("it declares no authorization endpoint");
    const url = new URL(authorization_endpoint);
    const params = {
      response_type: "code",
      client_id: this.plan.client_id,
      redirect_uri,
      scope: this.plan.scopes,
      code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
      code_challenge_method: "S256",
      state,
      nonce,
    };
    for (const [name, value] of Object.entries(params)) url.searchParams.set(name, value);
    return url.href;
  }

  /** The identity of the user that returned with these parameters. Throws upstream_failed, sign_in_failed. */
  async arrive(answer: URLSearchParams, { state, verifier, nonce, redirect_uri }: Departure): Promise<Vouched> {
    return await this.#told(async () => {
      const server = await this.#server();
      const { client_id, client_secret } = this.plan;
      const client: oauth.Client = { client_id, [oauth.clockTolerance]: CLOCK_SECONDS };
      const auth = client_secret === "" ? oauth.None() : clientAuth(server, client_secret);
      const params = oauth.validateAuthResponse(server, client, answer, state);
      const response = await oauth.authorizationCodeGrantRequest(
        server,
        client,
        auth,
        params,
        redirect_uri,
        verifier,
        this.#options(),
      );
      const tokens = await oauth.processAuthorizationCodeResponse(server, client, response, {
        expectedNonce: nonce,
        requireIdToken: true,
      });
      await oauth.validateApplicationLevelSignature(server, response, this.#options());
      const claims = oauth.getValidatedIdTokenClaims(tokens);
      if (!claims) throw failed("its response has no ID token");
      const { iss, sub, email, email_verified, name } = claims;
      const isVerified = email_verified === true && typeof email === "string";
      return {
        issuer: iss,
        subject: sub,
        email: isVerified ? email.trim().toLowerCase() : null,
        name: typeof name === "string" ? name.trim().slice(0, 128) : "",
        groups: textsIn(claims[this.plan.groupsClaim]),
      };
    });
  }

  async #server(): Promise<oauth.AuthorizationServer> {
    if (this.#known && this.#known.until > monotonicMs()) return this.#known.server;
    this.#asking ??= this.#ask().finally(() => {
      this.#asking = null;
    });
    return await this.#asking;
  }

  async #ask(): Promise<oauth.AuthorizationServer> {
    const { issuer } = this.plan;
    const response = await oauth.discoveryRequest(issuer, { ...this.#options(), algorithm: "oidc" });
    const server = await oauth.processDiscoveryResponse(issuer, response);
    this.#known = { server, until: monotonicMs() + KNOWN_MS };
    return server;
  }

  #options() {
    return {
      [oauth.customFetch]: boundedFetch,
      [oauth.allowInsecureRequests]: this.plan.issuer.protocol === "http:",
    };
  }

  /** Converts errors of the issuer into our own. */
  async #told<T>(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      if (error instanceof ServiceError) throw error;
      if (error instanceof oauth.AuthorizationResponseError) {
        throw new ServiceError("sign_in_failed", {
          detail: `${this.plan.name} denied the sign-in, or you cancelled it. Try again.`,
          cause: error,
        });
      }
      throw failed("its response could not be verified", error);
    }
  }
}

/** Some issuers send a single group as a string. */
function textsIn(claim: unknown): string[] | null {
  if (claim === undefined) return null;
  const all: unknown[] = Array.isArray(claim) ? claim : [claim];
  return all.filter((each) => typeof each === "string");
}

function clientAuth({ token_endpoint_auth_methods_supported: methods }: oauth.AuthorizationServer, secret: string) {
  const isPost = methods?.includes("client_secret_post") && !methods.includes("client_secret_basic");
  return isPost ? oauth.ClientSecretPost(secret) : oauth.ClientSecretBasic(secret);
}

const failed = (why: string, cause?: unknown) =>
  new ServiceError("upstream_failed", { detail: `The request to the identity provider failed: ${why}.`, cause });

/** Follows no redirects; limits the response in size and time. */
async function boundedFetch(url: string, options: oauth.CustomFetchOptions<string, unknown>): Promise<Response> {
  const { method, headers, body } = options;
  const signal = timeoutSignal(TIMEOUT_MS);
  const response = await fetch(url, {
    method,
    headers,
    body: (body as URLSearchParams | undefined) ?? null,
    redirect: "manual",
    signal,
  });
  const chunks: Uint8Array<ArrayBuffer>[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size > MAX_BYTES) throw new Error("the issuer's response is too long");
    chunks.push(chunk as Uint8Array<ArrayBuffer>);
  }
  return new Response(chunks.length > 0 ? Buffer.concat(chunks) : null, {
    status: response.status,
    headers: response.headers,
  });
}
