/** Owns the way through the HTTP door to the web's: what a page's request is made of. What a page is, is the web's. */
import type { Caller } from "../../core/operation.ts";
import type { HostClient } from "../hosts/client.ts";
import { forwardJson } from "../hosts/forward.ts";
import type { PageRequest } from "../page-request.ts";
import { readBody } from "./body.ts";
import { setAll, usualHeaders } from "./reply.ts";

export interface Web {
  has(path: string): boolean;
  answer(asked: PageRequest): Promise<Response>;
  /** What a client of MCP is told that has no good token, or one that lacks these scopes; null where nobody can sign in. */
  challenge(lacks: readonly string[] | null, asked: URL): string | null;
  /** Who is signed in, for a request of the API; null without a session's cookie. */
  sessionOf(headers: Headers): (() => Caller) | null;
}

interface Asked extends Pick<PageRequest, "url" | "ip" | "request_id"> {
  request: Request;
}

interface WebDeps {
  /** The name of this host. */
  host: string;
  /** By which other hosts are asked; null: this one is by itself. */
  others: HostClient | null;
}

export async function answerForWeb(web: Web, { host, others }: WebDeps, asked: Asked): Promise<Response> {
  const { request, url, ip, request_id } = asked;
  const { method, headers, signal } = request;
  const body = (maxBytes: number) => readBody(request, maxBytes, { measured: true });
  const ask: PageRequest["ask"] =
    others &&
    (async (other, path, query, until) => {
      // This host has looked at where the visit comes from.
      const said = { cookie: headers.get("cookie") ?? "", "sec-fetch-site": "same-origin" };
      const read = { method: "GET", path, query, headers: said };
      return await forwardJson(others, other, read, { ip, request_id, own: host }, AbortSignal.any([signal, until]));
    });
  const response = await web.answer({ method, headers, signal, body, ask, url, ip, request_id });
  // Nothing is kept but what says that it may be.
  const kept = response.headers.get("cache-control");
  setAll(response.headers, usualHeaders(request_id, host));
  if (kept !== null) response.headers.set("cache-control", kept);
  if (method !== "HEAD") return response;
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
