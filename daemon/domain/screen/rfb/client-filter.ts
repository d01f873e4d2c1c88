/**
 * Owns what a viewer may say to a screen's server: RFB 3.8 without a password, the messages of RFC 6143 (section 7.5), and those
 * extensions that viewers use. Who only looks asks for pictures; what would change anything is dropped.
 *
 *   version ──▶ security ──▶ shared or not ──▶ messages
 *
 * Bytes are passed on in whole messages, however they came.
 */
import { MOST_CUT_TEXT_BYTES, RfbError } from "./limits.ts";
import { SECURITY_NONE, VERSION_LINE } from "./messages.ts";

/** Encodings that a viewer may name: noVNC names some twenty. */
const MOST_ENCODINGS = 1024;
const MOST_FENCE_BYTES = 64;

interface Message {
  /** Bytes after which its length is known. */
  head: number;
  /** Throws RfbError for what is longer than any may be. */
  length(head: Buffer): number;
  /** Whether it only asks for pictures. */
  looks: boolean;
}

const fixed = (bytes: number, looks: boolean): Message => ({ head: 1, length: () => bytes, looks });

const MESSAGES: Readonly<Record<number, Message>> = {
  /** Pixel format. */
  0: fixed(20, true),
  /** Encodings. */
  2: { head: 4, length: (head) => 4 + 4 * atMost(MOST_ENCODINGS, head.readUInt16BE(2)), looks: true },
  /** Asks for an update. */
  3: fixed(10, true),
  /** Key, pointer. */
  4: fixed(8, false),
  5: fixed(6, false),
  /** Clipboard; of the extended kind its length is negative. */
  6: { head: 8, length: (head) => 8 + atMost(MOST_CUT_TEXT_BYTES, Math.abs(head.readInt32BE(4))), looks: false },
  /** Updates without asking. */
  150: fixed(10, true),
  /** Fence, by which viewer and server measure the way between them. */
  248: { head: 9, length: (head) => 9 + atMost(MOST_FENCE_BYTES, head.readUInt8(8)), looks: true },
  /** Shutdown and reboot of the machine. */
  250: fixed(4, false),
  /** Another size of the screen, of some monitors. */
  251: { head: 8, length: (head) => 8 + 16 * head.readUInt8(6), looks: false },
  /** A key with its scan code, as QEMU's servers take it. */
  255: { head: 2, length: (head) => (head.readUInt8(1) === 0 ? 12 : never(`255.${head.readUInt8(1)}`)), looks: false },
};

export class ClientFilter {
  readonly #drives: boolean;
  #step: "version" | "security" | "shared" | "messages" = "version";
  #held: Buffer = Buffer.alloc(0);

  constructor(drives: boolean) {
    this.#drives = drives;
  }

  /** What of these bytes, and of those that were held, goes on. Throws RfbError for what no viewer may say. */
  take(bytes: Uint8Array): Uint8Array {
    this.#held = this.#held.byteLength === 0 ? Buffer.from(bytes) : Buffer.concat([this.#held, bytes]);
    const passed: Uint8Array[] = [];
    for (let next = this.#next(); next; next = this.#next()) passed.push(next);
    return Buffer.concat(passed);
  }

  /** The next whole message as it goes on, of no bytes where it is dropped; null while there is none. */
  #next(): Uint8Array | null {
    if (this.#step === "version") {
      const line = this.#cut(VERSION_LINE.length);
      if (line && line.toString("latin1") !== VERSION_LINE) throw new RfbError("a viewer must speak RFB 3.8");
      if (line) this.#step = "security";
      return line;
    }
    if (this.#step === "security") {
      const chosen = this.#cut(1);
      if (chosen && chosen[0] !== SECURITY_NONE) throw new RfbError("a viewer must choose no security");
      if (chosen) this.#step = "shared";
      return chosen;
    }
    if (this.#step === "shared") {
      if (!this.#cut(1)) return null;
      this.#step = "messages";
      // Nobody sends others away.
      return Uint8Array.of(1);
    }
    const [type] = this.#held;
    if (type === undefined) return null;
    const message = MESSAGES[type] ?? never(String(type));
    if (this.#held.byteLength < message.head) return null;
    const whole = this.#cut(message.length(this.#held));
    return whole && (message.looks || (this.#drives && type !== SHUTDOWN)) ? whole : whole && EMPTY;
  }

  #cut(length: number): Buffer | null {
    if (this.#held.byteLength < length) return null;
    const cut = this.#held.subarray(0, length);
    this.#held = this.#held.subarray(length);
    return cut;
  }
}

const EMPTY = new Uint8Array(0);
/** Whoever drives the screen does not end the sandbox. */
const SHUTDOWN = 250;

function atMost(most: number, count: number): number {
  if (count > most) throw new RfbError(`a viewer's message of ${count} is longer than ${most}`);
  return count;
}

function never(type: string): never {
  throw new RfbError(`message ${type} is none that a viewer may send`);
}
