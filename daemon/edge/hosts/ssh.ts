/**
 * Transport of SSH sessions between hosts: a WebSocket at a path of the listener for hosts, which clients cannot reach. Whole messages in
 * both directions, in order; a host that disappears silently is detected as for pending requests (liveness.ts).
 */

import { startInterval, stopTimer } from "../../core/clock.ts";
import type { DuplexSession } from "../../core/concurrency/duplex-session.ts";
import { textOf } from "../../core/text.ts";
import { encodeFrame, Opcode, readMessages } from "../../domain/ports/websocket/frames.ts";
import { offer } from "../../domain/ports/websocket/handshake.ts";
import { type HostAnswer, type HostClient, type Reached, unreachable } from "./client.ts";
import { type EntryFacts, headersForOwner } from "./headers.ts";

const PATH = "/hosts/ssh";
/** Maximum size of one message, in either direction. */
export const MAX_MESSAGE_BYTES = 2 * 1024 * 1024;
/** Interval of keep-alive requests to the other host. */
const ASKED_EVERY_MS = 1000;
export const ALIVE = JSON.stringify({ type: "alive" });
const NORMAL = Buffer.from([0x03, 0xe8]);

/** Accepts a session that another host forwards, for a client of this address. */
export type TakeSession = (ip: string | null) => DuplexSession;

/** Whether the path is the one on which another host carries SSH sessions to this host. */
export function isSshPath({ pathname }: URL): boolean {
  return pathname === PATH;
}

/** The end of the entry host. */
export class HostSocket {
  readonly #answer: HostAnswer;
  readonly #timer: Timer;
  #heard: (() => void) | null = null;
  #sending: Promise<void> = Promise.resolve();

  constructor(answer: HostAnswer) {
    this.#answer = answer;
    this.#timer = startInterval(() => this.#ask(), ASKED_EVERY_MS);
    const over = () => {
      stopTimer(this.#timer);
      this.#hear();
    };
    answer.line.ended.then(over, over);
  }

  /** Resolves once the kernel has accepted the message. Rejects when the connection has ended. */
  send(message: Uint8Array | string): Promise<void> {
    return typeof message === "string"
      ? this.#write(Opcode.text, Buffer.from(message))
      : this.#write(Opcode.binary, message);
  }

  /** Messages of the other host, until either side closes. Throws if the connection breaks or a message is invalid. */
  async *messages(): AsyncGenerator<Uint8Array | string> {
    for await (const { opcode, payload } of readMessages(this.#answer.reader, MAX_MESSAGE_BYTES)) {
      if (opcode === Opcode.close) return;
      if (opcode === Opcode.ping) void this.#write(Opcode.pong, payload).catch(() => {});
      if (opcode === Opcode.binary) yield payload;
      if (opcode !== Opcode.text) continue;
      const text = textOf(payload);
      if (text === null) throw new Error("a text that is not UTF-8");
      if (text === ALIVE) this.#hear();
      else yield text;
    }
  }

  /** Closes after the data that was sent before. */
  close(): void {
    stopTimer(this.#timer);
    const close = () => this.#answer.line.close();
    void this.#write(Opcode.close, NORMAL).then(close, close);
  }

  /** Closes immediately. */
  cut(): void {
    this.#answer.line.close();
  }

  #ask(): void {
    if (this.#heard) return;
    this.#heard = this.#answer.wait();
    void this.send(ALIVE).catch(() => {});
  }

  #hear(): void {
    this.#heard?.();
    this.#heard = null;
  }

  #write(opcode: Opcode, payload: Uint8Array): Promise<void> {
    const written = this.#sending.then(() => this.#answer.line.write(encodeFrame(opcode, payload)));
    this.#sending = written.catch(() => this.#answer.line.close());
    return written;
  }
}

/** Opens a socket to a host; null if that host accepts no forwarded sessions. Rejects with host_unreachable, or the reason of `gone`. */
export async function openHostSocket(
  client: HostClient,
  host: Reached,
  about: EntryFacts,
  signal: AbortSignal,
): Promise<HostSocket | null> {
  const handshake = offer(null, "host");
  const headers = [...headersForOwner([["host", host.address]], about), ...handshake.headers];
  const answer = await client.ask(host, { method: "GET", target: PATH, headers, body: null, length: null }, signal);
  const { head, line } = answer;
  if (head.status !== 101) {
    line.close();
    if (head.status === 404) return null;
    throw unreachable(host, new Error(`it answered ${head.status}`));
  }
  try {
    handshake.accepted(head);
  } catch (error) {
    line.close();
    throw unreachable(host, error);
  }
  return new HostSocket(answer);
}
