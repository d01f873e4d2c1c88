/** Owns the way through the HTTP door to the web's: what a page's request is made of. What a page is, is the web's. */
import { HOST_HEADER } from "../../../shared/api/headers.ts";
import type { Caller } from "../../core/operation.ts";
import { readBody } from "./body.ts";

/** A request for a page. */
interface PageAsked {
  method: string;
  url: URL;
  headers: Headers;
  ip: string | null;
  request_id: string;
  signal: AbortSignal;
  body(maxBytes: number): Promise<Uint8Array>;
}

export interface Web {
  has(path: string): boolean;
  answer(asked: PageAsked): Promise<Response>;
  sessionOf(headers: Headers): (() => Caller) | null;
}

export async function answerForWeb(
  { web, host }: { web: Web; host: string },
  { request, url, ip, request_id }: { request: Request; url: URL; ip: string | null; request_id: string },
): Promise<Response> {
  const response = await web.answer({
    method: request.method,
    url,
    headers: request.headers,
    ip,
    request_id,
    signal: request.signal,
    body: (maxBytes) => readBody(request, maxBytes, { measured: true }),
  });
  response.headers.set("X-Request-Id", request_id);
  response.headers.set(HOST_HEADER, host);
  if (request.method !== "HEAD") return response;
  await response.body?.cancel();
  return new Response(null, { status: response.status, headers: response.headers });
}
