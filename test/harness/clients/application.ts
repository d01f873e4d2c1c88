/** An MCP client that a person authorizes: the official client with its own OAuth, and a visitor as its browser. */
import {
  Client,
  type OAuthClientInformationMixed,
  type OAuthClientProvider,
  type OAuthTokens,
  StreamableHTTPClientTransport,
  UnauthorizedError,
} from "@modelcontextprotocol/client";
import type { Visitor } from "../browser/visitor.ts";
import type { Json, TestDaemon } from "../daemon.ts";

/** The person's choice on the consent page. */
export interface Choice {
  do?: "allow" | "deny";
  gives?: string;
  rooms?: string;
  lasts?: string;
}

interface Options {
  name?: string;
  redirectUrl?: string;
  scope?: string;
  clientMetadataUrl?: string;
}

export class Application implements OAuthClientProvider {
  readonly #daemon: TestDaemon;
  readonly #person: Visitor;
  readonly #options: Options;
  readonly redirectUrl: string;
  readonly clientMetadataUrl?: string;
  readonly clientMetadata;
  /** The URL that the browser was last redirected to. */
  asked: URL | null = null;
  information: OAuthClientInformationMixed | undefined;
  saved: OAuthTokens | undefined;
  #verifier = "";

  constructor(daemon: TestDaemon, person: Visitor, options: Options = {}) {
    this.#daemon = daemon;
    this.#person = person;
    this.#options = options;
    const { name = "Test client", redirectUrl = "http://127.0.0.1:33418/callback", clientMetadataUrl } = options;
    this.redirectUrl = redirectUrl;
    if (clientMetadataUrl !== undefined) this.clientMetadataUrl = clientMetadataUrl;
    this.clientMetadata = {
      client_name: name,
      redirect_uris: [this.redirectUrl],
      grant_types: ["authorization_code", "refresh_token"],
      response_types: ["code"],
      token_endpoint_auth_method: "none",
      ...(options.scope === undefined ? {} : { scope: options.scope }),
    };
  }

  state = () => "a-state";
  clientInformation = () => this.information;
  saveClientInformation = (information: OAuthClientInformationMixed) => {
    this.information = information;
  };
  tokens = () => this.saved;
  saveTokens = (tokens: OAuthTokens) => {
    this.saved = tokens;
  };
  redirectToAuthorization = (url: URL) => {
    this.asked = url;
  };
  saveCodeVerifier = (verifier: string) => {
    this.#verifier = verifier;
  };
  codeVerifier = () => this.#verifier;

  get url(): URL {
    return new URL(`${this.#daemon.url}/mcp`);
  }

  /** The person opens the page that the browser was redirected to, and chooses. Returns the target of the redirect that follows. */
  async consent(choice: Choice = {}): Promise<URL> {
    const path = `/authorize${this.asked?.search ?? ""}`;
    const page = await this.#person.see(path);
    if (page.status !== 200 || !page.text.includes('action="/authorize"')) {
      throw new Error(`${page.status} ${page.to} ${page.text}`);
    }
    const request = this.asked?.search.slice(1) ?? "";
    const chosen = { gives: "all", rooms: "", lasts: "", do: "allow", ...choice };
    const done = await this.#person.send("/authorize", { request, ...chosen });
    if (done.to === null) throw new Error(`${done.status} ${done.text}`);
    return new URL(done.to);
  }

  /** Connects; the person gives consent if the client has to request it. */
  async connect(choice: Choice = {}): Promise<Client> {
    const make = () =>
      new Client(
        { name: this.#options.name ?? "test", version: "2" },
        { versionNegotiation: { mode: { pin: "2026-07-28" } } },
      );
    const transport = new StreamableHTTPClientTransport(this.url, { authProvider: this });
    try {
      const client = make();
      await client.connect(transport);
      return client;
    } catch (error) {
      if (!(error instanceof UnauthorizedError)) throw error;
    }
    const answer = await this.consent(choice);
    await transport.finishAuth(answer.searchParams);
    const client = make();
    await client.connect(new StreamableHTTPClientTransport(this.url, { authProvider: this }));
    return client;
  }

  /** A form request as an application makes it by hand. */
  async post(path: string, form: Record<string, string>): Promise<{ status: number; body: Json; headers: Headers }> {
    const response = await fetch(this.#daemon.url + path, { method: "POST", body: new URLSearchParams(form) });
    const text = await response.text();
    return { status: response.status, body: text === "" ? null : JSON.parse(text), headers: response.headers };
  }
}
