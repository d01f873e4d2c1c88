/** Requests and WebSockets to a service with a possibly self-signed certificate. npm-client/web.ts is the same for Node. */

/** fetch() without a client-side timeout. `ca` is a certificate to trust instead of the system's. */
export function fetchFrom(ca: string | null, url: string | URL, init: RequestInit = {}): Promise<Response> {
  // Bun's default timeout is five minutes.
  return fetch(url, { ...init, timeout: false, ...(ca === null ? {} : { tls: { ca } }) } as RequestInit);
}

export function openSocket(ca: string | null, url: string, headers: Record<string, string>): WebSocket {
  return new WebSocket(url, { headers, ...(ca === null ? {} : { tls: { ca } }) });
}
