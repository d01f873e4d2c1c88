/** The command line's requests to the authorization server: as an application without a browser (RFC 8628). */
import { unreachable } from "../../../../sdk/typescript/src/transport.ts";
import { CliError } from "../../kit/cli-error.ts";
import { fetchFrom } from "../../kit/web.ts";

/** Client id of the command line. */
export const COMMAND_LINE_ID = "roomd";

export interface TokenEndpoint {
  /** Without a trailing slash. */
  url: string;
  /** PEM of the certificates to trust instead of the system's; null: the system's. */
  ca: string | null;
}

export interface Tokens {
  access_token: string;
  refresh_token: string;
  expires_in: number;
}

export interface DeviceAuthorization {
  device_code: string;
  user_code: string;
  verification_uri: string;
  verification_uri_complete: string;
  expires_in: number;
  interval: number;
}

export type TokenReply<T> = { ok: true; body: T } | { ok: false; error: string; description: string };

const ANSWER_MS = 30_000;

/** Throws ConnectionError if there is no answer, CliError if the answer is not roomd's. */
export async function post<T = Tokens>(
  { url, ca }: TokenEndpoint,
  path: string,
  form: Record<string, string>,
): Promise<TokenReply<T>> {
  let response: Response;
  try {
    response = await fetchFrom(ca, url + path, {
      method: "POST",
      body: new URLSearchParams(form),
      redirect: "manual",
      signal: AbortSignal.timeout(ANSWER_MS),
    });
  } catch (error) {
    throw unreachable(url, error);
  }
  const body = (await response.json().catch(() => null)) as Record<string, unknown> | null;
  if (response.ok) return { ok: true, body: body as T };
  if (body === null || response.status === 404) {
    throw new CliError({
      detail: `Sign-in is disabled at ${url}.`,
      errors: [],
      hint: "Its operator can set `web.enabled = true`. With a key, set ROOMD_API_KEY.",
    });
  }
  const text = (name: string) => String(body[name] ?? body.detail ?? response.status);
  return { ok: false, error: text("error"), description: text("error_description") };
}
