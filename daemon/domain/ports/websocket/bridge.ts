/**
 * WebSocket session between a client at the transport and a server in a guest, or on another host. Messages are passed on whole and in
 * order in both directions. A slow client makes the server wait; a client that sends more than the server takes is closed.
 *
 *     open ──▶ either side's close, passed on ──▶ over
 *       └── the connection to the server breaks, or is cut ──▶ closed with its code ──▶ over
 */
import { MAX_SOCKET_MESSAGE_BYTES } from "../../../../shared/api/ports.ts";
import { startTimer, stopTimer } from "../../../core/clock.ts";
import type { DuplexSession, Peer } from "../../../core/concurrency/duplex-session.ts";
import { textOf } from "../../../core/text.ts";
import type { ByteReader } from "../../../wire/byte-reader.ts";
import type { OpenPort } from "../connections.ts";
import { encodeFrame, type Message, Opcode, readMessages, SocketBreach } from "./frames.ts";

const NORMAL = 1000;
const GOING_AWAY = 1001;
const NO_CODE = 1005;
const SERVER_LOST = 1011;
const TRY_LATER = 1013;
const NOT_UTF8 = 1007;
/** Bytes that a client has sent and the guest has not taken yet. */
const MAX_UNTAKEN_BYTES = 2 * MAX_SOCKET_MESSAGE_BYTES;
/** Memory overhead of a queued message. */
const MESSAGE_BYTES = 512;
/** Timeout for the server's reply to a close. */
const CLOSE_MS = 5000;

export class Bridge implements DuplexSession {
  readonly mostBytes = MAX_SOCKET_MESSAGE_BYTES;
  readonly #port: OpenPort;
  readonly #reader: ByteReader;
  #client: Peer | null = null;
  #isOver = false;
  #untaken = 0;
  #sending: Promise<void> = Promise.resolve();
  /** The newest unanswered ping: only that one requires a pong. */
  #ping: Uint8Array | null = null;

  constructor(port: OpenPort, reader: ByteReader) {
    this.#port = port;
    this.#reader = reader;
  }

  start(client: Peer): void {
    this.#client = client;
    void this.#listen(client);
  }

  hear(text: string): void {
    this.#pass(Opcode.text, Buffer.from(text));
  }

  take(bytes: Uint8Array): void {
    this.#pass(Opcode.binary, bytes);
  }

  left(code: number = NO_CODE, reason = ""): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#send(Opcode.close, closePayload(code, reason));
    const timer = startTimer(() => this.#port.close(), CLOSE_MS);
    const over = () => stopTimer(timer);
    this.#port.ended.then(over, over);
  }

  async #listen(client: Peer): Promise<void> {
    try {
      const { hold } = this.#port;
      for await (const message of readMessages(this.#reader, MAX_SOCKET_MESSAGE_BYTES, hold)) {
        if (message.opcode === Opcode.close) return this.#closedByServer(message.payload);
        if (!this.#isOver) await this.#show(client, message);
      }
    } catch (error) {
      const cut = this.#port.cutBecause;
      if (cut !== null) this.#end(GOING_AWAY, cut);
      else if (error instanceof SocketBreach) this.#end(error.code, `the server: ${error.message}`);
      else this.#end(SERVER_LOST, "the connection to the server broke");
    }
  }

  async #show(client: Peer, { opcode, payload }: Message): Promise<void> {
    if (opcode === Opcode.ping) return this.#answer(payload);
    if (opcode === Opcode.pong) return;
    if (opcode === Opcode.binary) return await client.send(payload);
    const text = textOf(payload);
    if (text === null) throw new SocketBreach(NOT_UTF8, "a text that is not UTF-8");
    await client.send(text);
  }

  #pass(opcode: Opcode, payload: Uint8Array): void {
    if (this.#isOver) return;
    if (this.#untaken + costOf(payload) > MAX_UNTAKEN_BYTES) {
      this.#end(TRY_LATER, "the server reads too slowly");
      return;
    }
    this.#send(opcode, payload);
  }

  #send(opcode: Opcode, payload: Uint8Array): void {
    const cost = costOf(payload);
    if (!this.#port.hold(cost)) {
      this.#end(TRY_LATER, "the sandbox's servers read too slowly");
      return;
    }
    this.#untaken += cost;
    this.#next(async () => {
      await this.#port.write(encodeFrame(opcode, payload));
      this.#untaken -= cost;
      this.#port.hold(-cost);
    });
  }

  #answer(ping: Uint8Array): void {
    const isFirst = this.#ping === null;
    this.#ping = ping;
    if (!isFirst) return;
    this.#next(async () => {
      const payload = this.#ping ?? new Uint8Array(0);
      this.#ping = null;
      await this.#port.write(encodeFrame(Opcode.pong, payload));
    });
  }

  /** A failed write means that the connection has ended, which is reported elsewhere. */
  #next(write: () => Promise<void>): void {
    this.#sending = this.#sending.then(write).catch(() => this.#port.close());
  }

  #closedByServer(payload: Uint8Array): void {
    const code = payload.byteLength >= 2 ? Buffer.from(payload).readUInt16BE(0) : NO_CODE;
    if (!this.#isOver) {
      this.#isOver = true;
      this.#send(Opcode.close, payload);
      this.#client?.close(isSayable(code) ? code : NORMAL, textOf(payload.subarray(2)) ?? "");
    }
    void this.#sending.then(() => this.#port.close());
  }

  #end(code: number, reason: string): void {
    if (!this.#isOver) {
      this.#isOver = true;
      this.#client?.close(code, reason);
    }
    this.#port.close();
  }
}

/** Whether a code is allowed in a close frame: 1005, 1006 and 1015 only describe a missing one. */
function isSayable(code: number): boolean {
  return (code >= 1000 && code <= 1014 && ![1004, 1005, 1006].includes(code)) || (code >= 3000 && code <= 4999);
}

function costOf(payload: Uint8Array): number {
  return payload.byteLength + MESSAGE_BYTES;
}

function closePayload(code: number, reason: string): Uint8Array {
  if (!isSayable(code)) return new Uint8Array(0);
  const payload = Buffer.concat([Buffer.alloc(2), Buffer.from(reason)]);
  payload.writeUInt16BE(code, 0);
  return payload.subarray(0, 125);
}
