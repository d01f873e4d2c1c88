/**
 * Replaces ../kit/web.ts in the npm client: requests by Node's HTTP client, which accepts a certificate to trust, and WebSockets by the
 * package ws.
 */
import { request as httpRequest } from "node:http";
import { request as httpsRequest } from "node:https";
import { Readable } from "node:stream";
import WebSocketOfNode from "ws";

/** Statuses of responses without a body. */
const EMPTY = [204, 205, 304];

export async function fetchFrom(ca: string | null, url: string | URL, init: RequestInit = {}): Promise<Response> {
  // Encodes the body and derives its headers as the global fetch does.
  const webRequest = new Request(String(url), init);
  const body = webRequest.body === null ? null : Buffer.from(await webRequest.arrayBuffer());
  const open = webRequest.url.startsWith("https:") ? httpsRequest : httpRequest;
  return await new Promise((resolve, reject) => {
    const request = open(webRequest.url, {
      method: webRequest.method,
      headers: Object.fromEntries(webRequest.headers),
      signal: webRequest.signal,
      ...(ca === null ? {} : { ca }),
    });
    request.on("error", reject);
    request.on("response", (answer) => {
      const { statusCode: status = 0, headers } = answer;
      const pairs = Object.entries(headers).map(([name, value]): [string, string] => [name, String(value)]);
      const isEmpty = EMPTY.includes(status) || webRequest.method === "HEAD";
      if (isEmpty) answer.resume();
      resolve(
        new Response(isEmpty ? null : (Readable.toWeb(answer) as unknown as ReadableStream), {
          status,
          headers: pairs,
        }),
      );
    });
    request.end(body);
  });
}

export function openSocket(ca: string | null, url: string, headers: Record<string, string>): WebSocket {
  return new WebSocketOfNode(url, { headers, ...(ca === null ? {} : { ca }) });
}
