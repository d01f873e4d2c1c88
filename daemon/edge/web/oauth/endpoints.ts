/** The authorization server's endpoints for programs: metadata, registration, tokens, device codes, and revocation. */

import { originsOf } from "../../../core/config/people-url.ts";
import { parseJson } from "../../../core/json.ts";
import type { Log } from "../../../core/log.ts";
import { ServiceError } from "../../../core/service-error.ts";
import { DEVICE_SECONDS, type Issued, type OAuth, only, POLL_SECONDS, Refusal } from "../../../domain/oauth/index.ts";
import type { PageRequest } from "../../page-request.ts";
import { AddressLimit } from "../../pipeline/address-limit.ts";
import type { Pipeline } from "../../pipeline/pipeline.ts";
import { retryAfterOf, toProblem } from "../../pipeline/problem.ts";
import type { Lookups } from "./lookups.ts";
import {
  AUTHORIZATION_SERVER,
  DEVICE_GRANT,
  OPENID_CONFIGURATION,
  PROTECTED_RESOURCE,
  resourceMetadata,
  serverMetadata,
} from "./metadata.ts";

const MAX_BYTES = 16 * 1024;
/** Per address: no authentication is needed. */
const DEVICES_PER_HOUR = 60;

/** The URL of the service with the requested loopback name; unchanged elsewhere. */
export function askedOf(url: string, { origin }: URL): string {
  return originsOf(url).includes(origin) ? url.replace(new URL(url).origin, origin) : url;
}

export interface EndpointDeps {
  oauth: Pick<OAuth, "register" | "devices" | "tokens" | "revoke">;
  road: Pick<Pipeline, "identify" | "failuresWritten">;
  lookups: Lookups;
  url(): string;
  /** Registration methods of applications; `perHour`: registrations per address, 0: unlimited. */
  clients: { registration: boolean; perHour: number; documents: boolean };
  log: Log;
}

export interface Endpoints {
  has(path: string): boolean;
  /** Never rejects. */
  answer(request: PageRequest): Promise<Response>;
}

interface Endpoint {
  method: "GET" | "POST";
  /** Status and body of the response; null: an empty body. Throws Refusal, ServiceError. */
  run(request: PageRequest): Promise<{ status?: number; body: object | null }>;
}

export function makeEndpoints({ oauth, road, lookups, url, clients, log }: EndpointDeps): Endpoints {
  const { perHour } = clients;
  const registrations = new AddressLimit(perHour, perHour);
  const devices = new AddressLimit(DEVICES_PER_HOUR, DEVICES_PER_HOUR);
  const metadata: Endpoint = { method: "GET", run: async () => ({ body: serverMetadata(url(), clients) }) };

  const issue = async (request: PageRequest): Promise<Issued> => {
    const form = await readForm(request);
    const need = (name: string) => required(form, name);
    const { ip, request_id } = request;
    const from = { ip, request_id };
    switch (need("grant_type")) {
      case "authorization_code": {
        const [client_id, code, code_verifier] = [need("client_id"), need("code"), need("code_verifier")];
        return await oauth.tokens.byCode(
          { client_id, code, code_verifier, redirect_uri: only(form, "redirect_uri") },
          from,
        );
      }
      case "refresh_token":
        return await oauth.tokens.byRefresh({ client_id: need("client_id"), token: need("refresh_token") }, from);
      case DEVICE_GRANT:
        return await oauth.tokens.byDevice({ client_id: need("client_id"), device_code: need("device_code") }, from);
      default:
        throw new Refusal("unsupported_grant_type", "grant_type is not supported.");
    }
  };

  const endpoints: Record<string, Endpoint> = {
    [AUTHORIZATION_SERVER]: metadata,
    [OPENID_CONFIGURATION]: metadata,
    [PROTECTED_RESOURCE]: {
      method: "GET",
      run: async (request) => ({ body: resourceMetadata(url(), askedOf(url(), request.url)) }),
    },

    "/token": {
      method: "POST",
      run: async (request) => {
        const { key_id: _, ...issued } = await issue(request);
        return { body: { token_type: "Bearer", ...issued } };
      },
    },

    "/revoke": {
      method: "POST",
      run: async (request) => {
        const { ip, request_id } = request;
        await oauth.revoke(required(await readForm(request), "token"), { ip, request_id });
        return { body: null };
      },
    },

    "/device_authorization": {
      method: "POST",
      run: async (request) => {
        const form = await readForm(request);
        const [client_id, scope, resource] = [required(form, "client_id"), only(form, "scope"), only(form, "resource")];
        if (!devices.take(request.ip ?? "")) throw tooOften(DEVICES_PER_HOUR);
        const { ip } = request;
        const deviceRequest = { client_id, scope, resource, ip, asker: lookups.of(ip) };
        const { device_code, user_code } = await oauth.devices.begin(deviceRequest);
        const verification_uri = `${url()}/device`;
        return {
          body: {
            device_code,
            user_code,
            verification_uri,
            verification_uri_complete: `${verification_uri}?user_code=${user_code}`,
            expires_in: DEVICE_SECONDS,
            interval: POLL_SECONDS,
          },
        };
      },
    },
  };
  if (clients.registration) {
    endpoints["/register"] = {
      method: "POST",
      run: async (request) => {
        const registration = await readJson(request);
        if (perHour > 0 && !registrations.take(request.ip ?? "")) throw tooOften(perHour);
        const registered = await oauth.register(registration);
        const fixed = {
          token_endpoint_auth_method: "none",
          grant_types: ["authorization_code", "refresh_token"],
          response_types: ["code"],
        };
        return { status: 201, body: { ...registered, ...fixed } };
      },
    };
  }

  const answer = async (request: PageRequest): Promise<Response> => {
    const endpoint = endpoints[request.url.pathname];
    if (!endpoint) throw new ServiceError("route_not_found");
    const isAsked = request.method === endpoint.method || (request.method === "HEAD" && endpoint.method === "GET");
    if (!isAsked) throw new ServiceError("method_not_allowed");
    const { status = 200, body } = await endpoint.run(request);
    return json(status, body, {});
  };

  /**
   * Guesses are counted and audited like an invalid key; but not those of a foreign page, which would block its visitors. The guessed
   * secrets have 256 bits.
   */
  const refused = async (request: PageRequest, refusal: Refusal): Promise<Response> => {
    const { error, description } = refusal;
    const isPage = (request.headers.get("sec-fetch-site") ?? "none") !== "none";
    if (!isPage && (error === "invalid_grant" || error === "invalid_client")) {
      const { ip, request_id } = request;
      const recognise = () => {
        throw new ServiceError("invalid_api_key", { detail: description });
      };
      const bad = road.identify({ authorization: null, source: "web", request_id, ip, recognise }).refusal;
      await road.failuresWritten();
      if (bad instanceof ServiceError && bad.code === "rate_limited") throw bad;
    }
    return json(error === "invalid_client" ? 401 : 400, { error, error_description: description }, {});
  };

  return {
    has: (path) => Object.hasOwn(endpoints, path),
    answer: async (request) => {
      try {
        return await answer(request).catch((error: unknown) => {
          if (error instanceof Refusal) return refused(request, error);
          throw error;
        });
      } catch (error) {
        const problem = toProblem(error, request.request_id, log);
        const wait = retryAfterOf(error, problem);
        const headers: Record<string, string> = wait === null ? {} : { "Retry-After": String(Math.ceil(wait)) };
        const word = problem.status >= 500 || problem.status === 429 ? "temporarily_unavailable" : "invalid_request";
        // Includes the fields that clients of the API read.
        return json(problem.status, { error: word, error_description: problem.detail, ...problem }, headers);
      }
    },
  };
}

function json(status: number, body: object | null, headers: Record<string, string>): Response {
  const all = {
    "Content-Type": "application/json",
    "X-Content-Type-Options": "nosniff",
    Pragma: "no-cache",
    ...headers,
  };
  return new Response(body === null ? null : JSON.stringify(body), { status, headers: all });
}

const tooOften = (perHour: number) =>
  new ServiceError("rate_limited", {
    detail: "Too many requests from this IP address.",
    retryAfterSeconds: 3600 / perHour,
  });

function required(form: URLSearchParams, name: string): string {
  const value = only(form, name);
  if (value === undefined) throw new Refusal("invalid_request", `${name} is missing.`);
  return value;
}

const mediaTypeOf = ({ headers }: PageRequest) => headers.get("content-type")?.split(";")[0]?.trim().toLowerCase();

/** Throws unsupported_media_type, body_too_large, invalid_body. */
async function readForm(request: PageRequest): Promise<URLSearchParams> {
  if (mediaTypeOf(request) !== "application/x-www-form-urlencoded") {
    throw new ServiceError("unsupported_media_type", { detail: "The body must be a URL-encoded form." });
  }
  return new URLSearchParams(new TextDecoder().decode(await request.body(MAX_BYTES)));
}

/** Throws the same, and invalid_client_metadata. */
async function readJson(request: PageRequest): Promise<Record<string, unknown>> {
  if (mediaTypeOf(request) !== "application/json") throw new ServiceError("unsupported_media_type");
  const text = new TextDecoder().decode(await request.body(MAX_BYTES));
  try {
    const value: unknown = parseJson(text);
    if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
  } catch {
    // Reported below.
  }
  throw new Refusal("invalid_client_metadata", "The body must be a JSON object.");
}
