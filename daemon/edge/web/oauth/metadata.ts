/** Metadata of the authorization server (RFC 8414), and of its protected resource (RFC 9728). */
import { GRANT_SCOPES } from "../../../../shared/api/grants.ts";

export const AUTHORIZATION_SERVER = "/.well-known/oauth-authorization-server";
/** Some clients look here alone. */
export const OPENID_CONFIGURATION = "/.well-known/openid-configuration";
export const PROTECTED_RESOURCE = "/.well-known/oauth-protected-resource/mcp";

export const DEVICE_GRANT = "urn:ietf:params:oauth:grant-type:device_code";

/** `url` is the service's URL, without a slash at its end: clients compare it character by character. */
export function serverMetadata(
  url: string,
  { registration, documents }: { registration: boolean; documents: boolean },
) {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    ...(registration ? { registration_endpoint: `${url}/register` } : {}),
    revocation_endpoint: `${url}/revoke`,
    device_authorization_endpoint: `${url}/device_authorization`,
    response_types_supported: ["code"],
    response_modes_supported: ["query"],
    grant_types_supported: ["authorization_code", "refresh_token", DEVICE_GRANT],
    code_challenge_methods_supported: ["S256"],
    token_endpoint_auth_methods_supported: ["none"],
    revocation_endpoint_auth_methods_supported: ["none"],
    scopes_supported: GRANT_SCOPES,
    client_id_metadata_document_supported: documents,
    authorization_response_iss_parameter_supported: true,
    service_documentation: `${url}/docs`,
  };
}

/** `asked` is the origin that a client requested: the client accepts no other origin's resource. */
export function resourceMetadata(url: string, origin: string = url) {
  return {
    resource: `${origin}/mcp`,
    authorization_servers: [url],
    scopes_supported: GRANT_SCOPES,
    bearer_methods_supported: ["header"],
    resource_name: "roomd",
    resource_documentation: `${url}/docs`,
  };
}

/** Challenge at /mcp for a client without a valid token. */
export const challengeOf = (url: string): string =>
  `Bearer resource_metadata="${url}${PROTECTED_RESOURCE}", scope="${GRANT_SCOPES.join(" ")}"`;

/** Challenge for a token with too few scopes: the union of the required and the existing scopes. */
export const stepUpOf = (url: string, scopes: readonly string[]): string =>
  `Bearer error="insufficient_scope", scope="${scopes.join(" ")}", resource_metadata="${url}${PROTECTED_RESOURCE}"`;
