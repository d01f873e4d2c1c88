import type { Host } from "../cluster/directory.ts";

/** A page request, as the HTTP transport passes it to the web transport. */
export interface PageRequest {
  method: string;
  url: URL;
  headers: Headers;
  ip: string | null;
  request_id: string;
  signal: AbortSignal;
  /** Throws body_too_large, invalid_body. */
  body(maxBytes: number): Promise<Uint8Array>;
  /** Reads this path from another host, for the signed-in user; null: standalone. Rejects with host_unreachable. */
  ask: AskForPage | null;
}

type AskForPage = (
  host: Host,
  path: string,
  query: Record<string, string>,
  until: AbortSignal,
) => Promise<{ status: number; body: unknown }>;
