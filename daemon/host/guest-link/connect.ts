/**
 * Connections into a guest, over its link: to ports of its loopback, and to its screen. The host's half of guest-agent/ports and screen.
 */
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ConnectRequest,
  type ScreenConnectRequest,
  type SocketConnectRequest,
  StreamErrorCode,
} from "../../../shared/agent-protocol/messages.ts";
import { within } from "../../core/concurrency/published.ts";
import type { GuestLink } from "./handshake.ts";

/** The guest tries both families, each with its own deadline. */
const ANSWER_MS = 25_000;

export interface GuestPort {
  /** Bytes from the guest, once; ends with the guest's half of the connection. */
  output: AsyncIterable<Uint8Array>;
  /** Resolves once the bytes are on their way. */
  write(bytes: Uint8Array): Promise<void>;
  /** Ends the host's half; the guest's half may continue. */
  endInput(): void;
  /** Resolves after both halves have ended; rejects with StreamError if the connection broke. */
  ended: Promise<void>;
  close(): void;
}

/** `first` is sent before the guest has answered, which saves a round trip. Rejects with StreamError: port_not_listening. */
export function connectInGuest(link: GuestLink, port: number, first?: Uint8Array): Promise<GuestPort> {
  return connectBy(link, { method: "connect", port }, first);
}

/** Rejects with StreamError: port_not_listening, unknown_method from agents without support for sockets. */
export function connectToSocket(link: GuestLink, path: string): Promise<GuestPort> {
  return connectBy(link, { method: "socket_connect", path });
}

/** Rejects with StreamError: no_screen, unknown_method from agents without support for screens. */
export function connectToScreen(link: GuestLink): Promise<GuestPort> {
  return connectBy(link, { method: "screen_connect" });
}

async function connectBy(
  link: GuestLink,
  request: ConnectRequest | SocketConnectRequest | ScreenConnectRequest,
  first?: Uint8Array,
): Promise<GuestPort> {
  const stream = link.open(request);
  const firstWrite = first && stream.write(Channel.stdin, first);
  const close = () => stream.fail(StreamErrorCode.detached, "the host has closed the connection");
  const opened = Promise.withResolvers<void>();
  stream.hear((event) => {
    if (Object(event).type === "connected") opened.resolve();
  });
  try {
    const early = { code: StreamErrorCode.internal, message: "the connection ended before it began" };
    const refused = stream.finished.then(() => Promise.reject(new StreamError(early)));
    await within(Promise.race([opened.promise, refused]), ANSWER_MS, "connecting in the guest");
    await firstWrite;
  } catch (error) {
    close();
    throw error;
  }
  return {
    output: stream.read(Channel.stdout),
    write: async (bytes) => void (await stream.write(Channel.stdin, bytes)),
    endInput: () => stream.endChannel(Channel.stdin),
    ended: stream.finished.then(() => {}),
    close,
  };
}
