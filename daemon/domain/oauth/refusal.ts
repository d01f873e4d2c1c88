/** Error responses to applications, with the codes of RFC 6749, 7591 and 8628; `description` is the part for people. */

export type OAuthError =
  | "invalid_request"
  | "invalid_client"
  | "invalid_client_metadata"
  | "invalid_redirect_uri"
  | "invalid_grant"
  | "invalid_scope"
  | "invalid_target"
  | "unsupported_grant_type"
  | "unsupported_response_type"
  | "access_denied"
  | "authorization_pending"
  | "slow_down"
  | "expired_token";

export class Refusal extends Error {
  readonly error: OAuthError;
  /** In a sentence. */
  readonly description: string;

  constructor(error: OAuthError, description: string) {
    super(`${error}: ${description}`);
    this.error = error;
    this.description = description;
  }
}
