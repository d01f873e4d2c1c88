/**
 * One server of the forward benchmark, selected by its first argument: `owner` serves HTTP, and TLS for hosts; `ours` and `fetch` forward
 * requests to the owner, and so does `plain` without TLS. The second argument is a directory with certificates, the others are the owner's
 * URLs. It prints its own URLs.
 */
import { loadHostCertificate } from "../../../daemon/cluster/certificate.ts";
import { HostClient } from "../../../daemon/edge/hosts/client.ts";
import { forwardRequest } from "../../../daemon/edge/hosts/forward.ts";
import { openMembersListener } from "../../../daemon/edge/hosts/listener.ts";

const [, , role, directory = "", httpUrl = "", tlsUrl = ""] = process.argv;
const ANY = { hostname: "127.0.0.1", port: 0 };
const [owner, entry] = await Promise.all(["owner", "entry"].map((name) => loadHostCertificate(`${directory}/${name}`)));
if (!owner || !entry) throw new Error("no certificates");
const body = JSON.stringify({ room_id: "bench", labels: {}, filler: "a".repeat(500) });
const headers = {
  "Content-Type": "application/json",
  "X-Request-Id": "req_01KGA0G5A0D4W7K9M2R5V8ZXQP",
  "Cache-Control": "no-store",
};
const answer = () => new Response(body, { headers });

function proxy(ask: (request: Request) => Promise<Response>): string {
  return Bun.serve({ ...ANY, fetch: ask }).url.href;
}

function byFetch(base: string, options: object): string {
  return proxy((request) => {
    const { pathname, search } = new URL(request.url);
    return fetch(base + pathname + search, { method: request.method, headers: request.headers, ...options });
  });
}

const SERVERS: Record<string, () => string[]> = {
  owner: () => {
    const inside = openMembersListener(ANY, { own: owner, members: [entry.cert] }, (listen) =>
      Bun.serve({ ...listen, fetch: answer }),
    );
    return [Bun.serve({ ...ANY, fetch: answer }).url.href, inside.url.href];
  },
  ours: () => {
    const client = new HostClient({ certificate: entry });
    const host = { host_id: "owner", address: new URL(tlsUrl).host, certificate: owner.cert };
    const about = { ip: "192.0.2.7", request_id: "req_01KGA0G5A0D4W7K9M2R5V8ZXQP", own: "entry" };
    return [proxy((request) => forwardRequest(client, host, request, about, request.signal))];
  },
  fetch: () => [
    byFetch(tlsUrl.replace(/\/$/, ""), {
      tls: { cert: entry.cert, key: entry.key, ca: owner.cert, checkServerIdentity: () => undefined },
    }),
  ],
  plain: () => [byFetch(httpUrl.replace(/\/$/, ""), {})],
};
console.log(JSON.stringify(SERVERS[role ?? ""]?.() ?? []));
