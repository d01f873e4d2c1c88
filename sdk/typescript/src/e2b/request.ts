/** Options of a call with E2B's names: connection to the service, and the longest wait for its response. */
import type { ClientOptions } from "../client.ts";
import type { CallOptions } from "../transport.ts";

/** Bounds of a call. */
export interface RequestOpts {
  /** Longest wait for the response; 0 is no limit. */
  requestTimeoutMs?: number;
  /** Ends the waiting. */
  signal?: AbortSignal;
}

/** Connection to the service, and the bounds of a call. */
export interface ConnectionOpts extends RequestOpts {
  /** API key; ROOMD_API_KEY by default. */
  apiKey?: string;
  /** URL of the service; ROOMD_URL by default. */
  apiUrl?: string;
}

/** The connection options for the SDK's client. */
export function clientOf({ apiKey, apiUrl }: ConnectionOpts): ClientOptions {
  return { ...(apiKey === undefined ? {} : { apiKey }), ...(apiUrl === undefined ? {} : { url: apiUrl }) };
}

/** The bounds for a call of the SDK. */
export function callOf({ requestTimeoutMs, signal }: RequestOpts): CallOptions {
  return { ...(requestTimeoutMs ? { waitMs: requestTimeoutMs } : {}), ...(signal === undefined ? {} : { signal }) };
}
