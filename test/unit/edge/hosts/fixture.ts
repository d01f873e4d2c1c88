/** Fixture of the tests of hosts: members with their own certificates, an owner's server, an entry that forwards to it. */
import { createHash } from "node:crypto";
import { readdirSync } from "node:fs";
import { loadHostCertificate } from "../../../../daemon/cluster/certificate.ts";
import type { Certificate } from "../../../../daemon/core/config/certificate.ts";
import { ServiceError } from "../../../../daemon/core/service-error.ts";
import { HostClient, type HostClientOptions, type Reached } from "../../../../daemon/edge/hosts/client.ts";
import { type Forwarded, forwardRequest, forwardUpgrade } from "../../../../daemon/edge/hosts/forward.ts";
import { type MembersListener, openMembersListener } from "../../../../daemon/edge/hosts/listener.ts";
import { type SocketData, websocket } from "../../../../daemon/edge/http/websocket.ts";
import type { RunningServer, ServeOptions } from "../../../../daemon/edge/listener.ts";
import { scratch } from "../tls-fixture.ts";

export interface Member {
  host_id: string;
  own: Certificate;
}

/** Hosts with a certificate each, in a directory that is gone after the test. */
export async function members<const Names extends readonly string[]>(
  ...names: Names
): Promise<{ [Index in keyof Names]: Member } & Disposable> {
  const directory = scratch();
  const made = await Promise.all(
    names.map(async (host_id) => ({ host_id, own: await loadHostCertificate(`${directory.path}/${host_id}`) })),
  );
  return Object.assign(made, { [Symbol.dispose]: () => directory[Symbol.dispose]() }) as never;
}

type Answer = (request: Request, server: Bun.Server<SocketData>) => Response | Promise<Response> | undefined;

/** A host's listener for the others, with these answers. */
export function listen(
  at: Member,
  admitted: readonly Member[],
  answer: Answer,
): { listener: MembersListener; reached: Reached; stop(): Promise<void> } {
  const start = (options: ServeOptions): RunningServer =>
    Bun.serve<SocketData>({
      ...options,
      idleTimeout: 0,
      maxRequestBodySize: Number.MAX_SAFE_INTEGER,
      development: false,
      websocket,
      fetch: answer as never,
    });
  const listener = openMembersListener(
    { hostname: "127.0.0.1", port: 0 },
    { own: at.own, members: admitted.map(({ own }) => own.cert) },
    start,
  );
  const reached = { host_id: at.host_id, address: `127.0.0.1:${listener.url.port}`, certificate: at.own.cert };
  return { listener, reached, stop: () => listener.stop(0) };
}

export function clientOf({ own }: Member, options: Partial<HostClientOptions> = {}): HostClient & Disposable {
  const client = new HostClient({ certificate: own, ...options });
  return Object.assign(client, { [Symbol.dispose]: () => client.close() });
}

export const ABOUT: Forwarded = { ip: "192.0.2.7", request_id: "req-of-test", own: "entry" };

/** A public server that forwards everything. */
export function entry(
  client: HostClient,
  host: Reached,
  about: Forwarded = ABOUT,
): { url: string; stop(): Promise<void> } {
  const server = Bun.serve<SocketData>({
    hostname: "127.0.0.1",
    port: 0,
    idleTimeout: 0,
    maxRequestBodySize: Number.MAX_SAFE_INTEGER,
    development: false,
    websocket,
    fetch: async (request, server) => {
      try {
        if (request.headers.get("upgrade") !== "websocket") {
          return await forwardRequest(client, host, request, about, request.signal);
        }
        const upgraded = await forwardUpgrade(client, host, request, about, request.signal);
        if (upgraded.kind === "answers") return upgraded.response;
        const { conversation, headers } = upgraded;
        if (server.upgrade(request, { data: { conversation, drained: null, countMessage: () => 1 }, headers }))
          return undefined as never;
        conversation.left();
        return new Response("no handshake", { status: 400 });
      } catch (error) {
        if (error instanceof ServiceError)
          return Response.json({ code: error.code, ...error.options.details }, { status: 503 });
        return new Response(String(error), { status: 599 });
      }
    },
  });
  return { url: `http://127.0.0.1:${server.port}`, stop: () => server.stop(true) };
}

/** An owner that is a foreign HTTP server: it sends these bytes to `answers` requests on each connection, and closes it at the next. */
export function rawOwner(at: Member, response: string, answers = Number.POSITIVE_INFINITY) {
  let received = "";
  let closed = 0;
  const sockets = new Set<Bun.Socket<{ heard: string; left: number }>>();
  const server = Bun.listen<{ heard: string; left: number }>({
    hostname: "127.0.0.1",
    port: 0,
    tls: { cert: at.own.cert, key: at.own.key, requestCert: true, rejectUnauthorized: false },
    socket: {
      open: (socket) => {
        socket.data = { heard: "", left: answers };
        sockets.add(socket);
      },
      data: (socket, bytes) => {
        received += bytes.toString("latin1");
        socket.data.heard += bytes.toString("latin1");
        if (!socket.data.heard.includes("\r\n\r\n")) return;
        socket.data.heard = "";
        if (socket.data.left-- > 0) socket.write(Buffer.from(response, "latin1"));
        else socket.end();
      },
      close: (socket) => {
        closed++;
        sockets.delete(socket);
      },
      error: () => {},
    },
  });
  return {
    reached: { host_id: at.host_id, address: `127.0.0.1:${server.port}`, certificate: at.own.cert },
    get asked() {
      return received;
    },
    get closed() {
      return closed;
    },
    /** The next write to one of them fails, before any event has reported the reset. */
    reset: () => {
      for (const socket of [...sockets]) socket.terminate();
    },
    stop: () => server.stop(true),
  };
}

export function descriptors(): number {
  return readdirSync("/proc/self/fd").length;
}

export function sha256(): { add(bytes: Uint8Array): void; text(): string } {
  const hash = createHash("sha256");
  return { add: (bytes) => void hash.update(bytes), text: () => hash.digest("hex") };
}
