/** Metadata that an application declares, at registration or in a document of its own. */
import { requireRedirectUri } from "./redirects.ts";
import { Refusal } from "./refusal.ts";

export interface Client {
  client_id: string;
  /** As it calls itself. */
  name: string;
  redirect_uris: readonly string[];
}

const MAX_NAME_CHARACTERS = 100;
const MAX_REDIRECTS = 5;

/** Parses an application's metadata. Throws invalid_client_metadata, invalid_redirect_uri. */
export function readMetadata(metadata: Record<string, unknown>): { name: string; redirect_uris: string[] } {
  const { client_name, redirect_uris, token_endpoint_auth_method: method } = metadata;
  if (!Array.isArray(redirect_uris) || redirect_uris.length === 0 || redirect_uris.length > MAX_REDIRECTS) {
    throw new Refusal("invalid_redirect_uri", `redirect_uris must be a list of 1 to ${MAX_REDIRECTS}.`);
  }
  // Some request a secret and work without one: the response has "none", and no secret.
  if (method !== undefined && typeof method !== "string") {
    throw new Refusal("invalid_client_metadata", "token_endpoint_auth_method must be a string.");
  }
  const name = typeof client_name === "string" ? nameOf(client_name) : "";
  return { name: name || "An application without a name", redirect_uris: redirect_uris.map(requireRedirectUri) };
}

/** One line of limited length, for display. */
function nameOf(name: string): string {
  return name
    .replaceAll(/[\p{C}\p{Zl}\p{Zp}]+/gu, " ")
    .trim()
    .slice(0, MAX_NAME_CHARACTERS);
}
