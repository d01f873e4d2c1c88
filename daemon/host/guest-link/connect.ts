/** Owns connections to ports of a guest's loopback, over its link: the host's half of guest-agent/ports. */
import { Channel, type ConnectRequest, StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { within } from "../../core/published.ts";
import type { GuestLink } from "./handshake.ts";

/** The guest tries both families, each with its own deadline. */
const ANSWER_MS = 25_000;

export interface GuestPort {
  /** What comes out, once; ends with the guest's half of the connection. */
  output: AsyncIterable<Uint8Array>;
  /** Resolves once they are on their way. */
  write(bytes: Uint8Array): Promise<void>;
  /** Our half has ended; the guest's may go on. */
  endInput(): void;
  /** Resolves after both halves; rejects with StreamError when the connection broke. */
  ended: Promise<void>;
  close(): void;
}

/** `first` is on its way before somebody has answered, which saves a turn. Rejects with StreamError: port_not_listening. */
export async function connectInGuest(link: GuestLink, port: number, first?: Uint8Array): Promise<GuestPort> {
  const request: ConnectRequest = { method: "connect", port };
  const stream = link.open(request);
  const begun = first && stream.write(Channel.stdin, first);
  const close = () => stream.fail(StreamErrorCode.detached, "the host has closed the connection");
  const opened = Promise.withResolvers<void>();
  stream.hear((event) => {
    if (Object(event).type === "connected") opened.resolve();
  });
  try {
    const refused = stream.finished.then(() => Promise.reject(new Error("the connection ended before it began")));
    await within(Promise.race([opened.promise, refused]), ANSWER_MS, "connecting to a port");
    await begun;
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
