/** One authorization code grant, step by step as applications request it by hand: the request, the person's answer, and the tokens. */
import { createHash, randomBytes } from "node:crypto";
import type { PageSeen, Visitor } from "../browser/visitor.ts";
import type { Json, TestDaemon } from "../daemon.ts";

export interface TokenAnswer {
  status: number;
  headers: Headers;
  body: Json;
}

/** The parameters that an application requests. */
interface Asked {
  client_id: string;
  redirect_uri: string;
  scope?: string | undefined;
  resource?: string | undefined;
}

const ALLOW = { gives: "all", rooms: "", lasts: "", do: "allow" };

export class CodeGrant {
  readonly #daemon: TestDaemon;
  readonly #asked: Asked;
  readonly #verifier = randomBytes(32).toString("base64url");
  readonly state = randomBytes(8).toString("hex");

  constructor(daemon: TestDaemon, request: Asked) {
    this.#daemon = daemon;
    this.#asked = request;
  }

  /** The query of the browser's request to /authorize. */
  get query(): URLSearchParams {
    const params = Object.entries(this.#asked).filter((entry): entry is [string, string] => entry[1] !== undefined);
    return new URLSearchParams([
      ["response_type", "code"],
      ...params,
      ["code_challenge", createHash("sha256").update(this.#verifier).digest("base64url")],
      ["code_challenge_method", "S256"],
      ["state", this.state],
    ]);
  }

  /** The consent page. */
  look(person: Visitor): Promise<PageSeen> {
    return person.see(`/authorize?${this.query}`);
  }

  /** The person consents. Returns the URL of the redirect. */
  async allow(person: Visitor): Promise<URL> {
    const { status, to, text } = await person.send("/authorize", { request: this.query.toString(), ...ALLOW });
    if (to === null) throw new Error(`${status} ${text}`);
    return new URL(to);
  }

  /** Exchanges the code; sends the resource if the request named it. */
  exchange(code: string): Promise<TokenAnswer> {
    const { client_id, redirect_uri, resource } = this.#asked;
    return token(this.#daemon, {
      grant_type: "authorization_code",
      client_id,
      code,
      redirect_uri,
      code_verifier: this.#verifier,
      ...(resource === undefined ? {} : { resource }),
    });
  }

  refresh(refresh_token: string): Promise<TokenAnswer> {
    const { client_id } = this.#asked;
    return token(this.#daemon, { grant_type: "refresh_token", client_id, refresh_token });
  }
}

/** One question to the token endpoint. */
export async function token(daemon: TestDaemon, form: Record<string, string>): Promise<TokenAnswer> {
  const response = await fetch(`${daemon.url}/token`, { method: "POST", body: new URLSearchParams(form) });
  return { status: response.status, headers: response.headers, body: (await response.json()) as Json };
}
