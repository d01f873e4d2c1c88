/**
 * WebSockets of the HTTP transport: handshake, and the connection of a conversation's two sides.
 *
 * The handshake is an operation like any other. A token may come as a subprotocol, because browsers can send no header and a query ends up
 * in logs. A screen's ticket may come in the query, since a viewer can send it nowhere else. A foreign page is refused by its Origin.
 */
import type { Server, ServerWebSocket, WebSocketHandler } from "bun";
import type { Operation } from "../../../shared/api/contract.ts";
import { MAX_SOCKET_MESSAGE_BYTES } from "../../../shared/api/ports.ts";
import { TERMINAL_PROTOCOL, TOKEN_PROTOCOL_PREFIX } from "../../../shared/api/terminals.ts";
import type { DuplexSession, Peer } from "../../core/concurrency/duplex-session.ts";
import { countInTurn } from "../../core/concurrency/next-turn.ts";
import { ServiceError } from "../../core/service-error.ts";

/** A client is pinged, and disconnected after this time without data from it. */
const IDLE_SECONDS = 60;
/** Longest close reason that a browser shows. */
const MAX_REASON_BYTES = 123;
const TOO_LARGE = 1009;
/** Messages of a client within one turn of the event loop, above which it is disconnected: each costs a call, however small. */
const MAX_IN_A_TURN = 2_000;
const TOO_MANY = 1008;

/** The response of the route's handler when the connection was upgraded. */
export const UPGRADED = new Response(null);

/** Upgrades a connection for a conversation, with these headers in the response; false if its handshake is invalid. */
export type Upgrade = (conversation: DuplexSession, answered: Headers) => boolean;

export interface SocketData {
  conversation: DuplexSession;
  /** The sender that waits for buffer space. */
  drained: PromiseWithResolvers<void> | null;
  /** Counts a message; returns the client's number of messages in this turn of the event loop. */
  countMessage(): number;
}

export function isHandshake(headers: Headers): boolean {
  return headers.get("upgrade")?.toLowerCase() === "websocket";
}

/** Programs send no Origin; a browser's page must be the service's own. */
export function isOwnOrigin(headers: Headers, publicUrl: string): boolean {
  const origin = headers.get("origin");
  if (origin === null) return true;
  if (!URL.canParse(origin)) return false;
  const { host } = new URL(origin);
  return host === headers.get("host") || host === new URL(publicUrl).host;
}

export function foreignOrigin(): ServiceError {
  return new ServiceError("source_mismatch", {
    detail: "A web page can open a WebSocket only to the origin that served it.",
  });
}

/** The token among the subprotocols, or the ticket in the query if the operation accepts one there; else null. */
export function tokenOf(headers: Headers, { query }: Pick<Operation, "query">, { searchParams }: URL): string | null {
  const ticket = "ticket" in query.properties ? searchParams.get("ticket") : null;
  if (ticket !== null) return ticket;
  const offer = protocolsOf(headers).find((each) => each.startsWith(TOKEN_PROTOCOL_PREFIX));
  return offer?.slice(TOKEN_PROTOCOL_PREFIX.length) ?? null;
}

/** Headers that accept one of the subprotocols that a client offers. */
export function takenProtocol(headers: Headers): Headers {
  const offered = protocolsOf(headers);
  // A browser closes the connection unless one of its offers is accepted; the token is echoed only to a client that offers nothing else.
  const chosen = offered.find((each) => each === TERMINAL_PROTOCOL) ?? offered[0];
  return new Headers(chosen === undefined ? {} : { "Sec-WebSocket-Protocol": chosen });
}

export function upgrade(
  server: Server<SocketData>,
  request: Request,
  conversation: DuplexSession,
  headers: Headers,
): boolean {
  return server.upgrade(request, { data: { conversation, drained: null, countMessage: countInTurn() }, headers });
}

export const websocket: WebSocketHandler<SocketData> = {
  maxPayloadLength: MAX_SOCKET_MESSAGE_BYTES,
  idleTimeout: IDLE_SECONDS,
  sendPings: true,
  open: (socket) => socket.data.conversation.start(talkerOf(socket)),
  message: (socket, message) => {
    const { conversation } = socket.data;
    if (socket.data.countMessage() > MAX_IN_A_TURN) return socket.close(TOO_MANY, "too many messages in a short time");
    if (Buffer.byteLength(message) > conversation.mostBytes) socket.close(TOO_LARGE, "the message is too large");
    else if (typeof message === "string") conversation.hear(message);
    // A copy: the server reuses the memory of the frame.
    else conversation.take(new Uint8Array(message));
  },
  drain: ({ data }) => letGo(data),
  close: ({ data }, code, reason) => {
    letGo(data);
    data.conversation.left(code, reason);
  },
};

function talkerOf(socket: ServerWebSocket<SocketData>): Peer {
  const { data } = socket;
  return {
    say: (text) => void socket.sendText(text),
    send: async (message) => {
      if (typeof message === "string") socket.sendText(message);
      else socket.sendBinary(message);
      // Everything that is not yet in the kernel counts: a client that does not read causes backpressure immediately.
      if (socket.readyState !== WebSocket.OPEN || socket.getBufferedAmount() === 0) return;
      data.drained ??= Promise.withResolvers<void>();
      await data.drained.promise;
    },
    close: (code, reason) => socket.close(code, Buffer.from(reason).subarray(0, MAX_REASON_BYTES).toString()),
  };
}

function letGo(data: SocketData): void {
  data.drained?.resolve();
  data.drained = null;
}

function protocolsOf(headers: Headers): string[] {
  const offer = headers.get("sec-websocket-protocol") ?? "";
  return offer.split(",").flatMap((each) => each.trim() || []);
}
