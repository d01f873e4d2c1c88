/** HTTP endpoint of the web transport: builds the request of a page. The pages are in the web transport. */
import type { Caller } from "../../core/call/operation.ts";
import type { HostClient } from "../hosts/client.ts";
import { forwardJson } from "../hosts/forward.ts";
import type { PageRequest } from "../page-request.ts";
import { readBody } from "./body.ts";
import { setAll, usualHeaders } from "./reply.ts";

export interface Web {
  has(path: string): boolean;
  answer(pageRequest: PageRequest): Promise<Response>;
  /** The challenge for an MCP client without a valid token, or without these scopes; null if sign-in is not possible. */
  challenge(lacks: readonly string[] | null, requestedUrl: URL): string | null;
  /** The signed-in user, for a request of the API; null without a session's cookie. */
  sessionOf(headers: Headers): (() => Caller) | null;
}

interface WebHttpRequest extends Pick<PageRequest, "url" | "ip" | "request_id"> {
  request: Request;
}

interface WebDeps {
  /** The name of this host. */
  host: string;
  /** Client for other hosts; null: standalone. */
  others: HostClient | null;
}

export async function answerForWeb(web: Web, { host, others }: WebDeps, webRequest: WebHttpRequest): Promise<Response> {
  const { request, url, ip, request_id } = webRequest;
  const { method, headers, signal } = request;
  const body = (maxBytes: number) => readBody(request, maxBytes, { measured: true });
  const ask: PageRequest["ask"] =
    others &&
    (async (other, path, query, until) => {
      // This host has checked the origin of the request.
      const forwardedHeaders = { cookie: headers.get("cookie") ?? "", "sec-fetch-site": "same-origin" };
      const read = { method: "GET", path, query, headers: forwardedHeaders };
      return await forwardJson(others, other, read, { ip, request_id, own: host }, AbortSignal.any([signal, until]));
    });
  const response = await web.answer({ method, headers, signal, body, ask, url, ip, request_id });
  // Not cached, unless the response allows it.
  const kept = response.headers.get("cache-control");
  setAll(response.headers, usualHeaders(request_id, host));
  if (kept !== null) response.headers.set("cache-control", kept);
  if (method !== "HEAD") return response;
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
