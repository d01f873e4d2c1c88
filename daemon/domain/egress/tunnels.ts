/**
 * Outgoing connections of a program of this host that acts for a party without access to the host's network, such as the fetch of an
 * organization's image: to public addresses, and to targets named by the operator. The program requests them with CONNECT (RFC 9110, 9.3.6)
 * on a socket with a path.
 */
import { createServer, type Socket } from "node:net";
import { pipeSockets } from "../../host/pipe-sockets.ts";
import { type Address, readAddress } from "./addresses.ts";
import { Policy } from "./allowlist.ts";
import { dial } from "./dial.ts";
import { canonicalName } from "./names.ts";
import { groundOf } from "./requests.ts";
import { HostResolver } from "./resolver.ts";

/** Its resolver, and the slots in it, have no other user. */
const ASKER = { org_id: "", sandbox_id: "" };
const HTTPS_PORT = 443;
const MAX_HEAD_BYTES = 4096;
const HEAD_END = "\r\n\r\n";
const CONNECT = /^CONNECT (\[[\da-fA-F:.]+\]|[\w.~-]{1,253}):(\d{1,5}) HTTP\/1\.[01]\r\n/;
/** More than the fetch of an image opens; both ends count. */
const MAX_OPEN = 128;

export interface TunnelsOptions {
  /** Path of the socket; its directory admits only its owner. */
  path: string;
  /** HOST:PORT, at any address; in lower case, and as HOST alone for the port of https. */
  named: readonly string[];
  hostsFile: string;
  /** Called with each HOST:PORT that is neither named nor public, or does not exist. */
  refused(target: string): void;
}

export async function openTunnels({ path, named, hostsFile, refused }: TunnelsOptions): Promise<AsyncDisposable> {
  const isNamed = (host: string, port: number) =>
    named.includes(`${host}:${port}`) || (port === HTTPS_PORT && named.includes(host));
  const policy = new Policy(["*"], groundOf(""));
  const resolver = new HostResolver(hostsFile, "host");
  const over = new AbortController();
  const open = new Set<Socket>();

  const addressesOf = async (host: string): Promise<Address[]> => {
    const literal = readAddress(host.replace(/^\[|\]$/g, ""));
    if (literal) return [literal];
    const name = canonicalName(host);
    return name === null ? [] : await resolver.resolve(name, ASKER);
  };
  /** Empty if the target is not allowed or the name does not exist: the response does not reveal which names are private. */
  const decide = async (host: string, port: number): Promise<Address[]> => {
    const addresses = await addressesOf(host);
    if (isNamed(host.toLowerCase(), port)) return addresses;
    return addresses.filter((address) => policy.ofAddress(address, port) === "allowed");
  };
  const serve = async (client: Socket) => {
    const head = await readHead(client);
    if (head === null) return client.end("HTTP/1.1 405 Method Not Allowed\r\n\r\n");
    const { host, port, rest } = head;
    const addresses = await decide(host, port);
    if (addresses.length === 0) {
      refused(`${host}:${port}`);
      return client.end("HTTP/1.1 403 Forbidden\r\n\r\n");
    }
    const { socket } = await dial(addresses, port, over.signal);
    if (client.destroyed) return socket.destroy();
    open.add(socket.once("close", () => open.delete(socket)));
    client.write("HTTP/1.1 200 Connected\r\n\r\n");
    socket.write(rest);
    return pipeSockets(client, socket);
  };

  const server = createServer({ allowHalfOpen: true }, (client) => {
    client.on("error", () => {});
    if (open.size >= MAX_OPEN) {
      client.destroy();
      return;
    }
    open.add(client.once("close", () => open.delete(client)));
    serve(client).catch(() => client.end("HTTP/1.1 502 Bad Gateway\r\n\r\n"));
  });
  await new Promise<void>((listening, fail) => server.once("error", fail).listen(path, listening));
  return {
    [Symbol.asyncDispose]: async () => {
      over.abort();
      const closed = new Promise((done) => server.close(done));
      for (const socket of open) socket.destroy();
      await closed;
    },
  };
}

/** The requested target, and the bytes after the head; null for any other request. The socket is paused then. */
function readHead(client: Socket): Promise<{ host: string; port: number; rest: Uint8Array } | null> {
  const { promise, resolve } = Promise.withResolvers<{ host: string; port: number; rest: Uint8Array } | null>();
  let bytes = Buffer.alloc(0);
  const take = (piece: Buffer) => {
    bytes = Buffer.concat([bytes, piece]);
    const end = bytes.indexOf(HEAD_END);
    if (end < 0 && bytes.byteLength <= MAX_HEAD_BYTES) return;
    client.off("data", take).pause();
    const [, host = "", port = ""] = CONNECT.exec(bytes.toString("latin1")) ?? [];
    const isOne = end >= 0 && host !== "" && Number(port) >= 1 && Number(port) <= 65_535;
    resolve(isOne ? { host, port: Number(port), rest: bytes.subarray(end + HEAD_END.length) } : null);
  };
  client.on("data", take);
  client.once("close", () => resolve(null));
  return promise;
}
