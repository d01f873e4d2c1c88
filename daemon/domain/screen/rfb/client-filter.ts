/**
 * Filter of a viewer's messages to a screen's server: RFB 3.8 without a password, the messages of RFC 6143 (section 7.5), and the
 * extensions that viewers use. A view-only viewer can only request pictures; all messages with an effect are dropped. It does not get the
 * clipboard either: in its place the daemon declares to the server that it accepts none, which needs a viewer with the extended clipboard.
 *
 *     version ──▶ security ──▶ shared or not ──▶ messages: head ──▶ the rest of it ──▶ head …
 *                                                  encodings of a view-only viewer: head ──▶ one ──▶ one … ──▶ head …
 *
 * It buffers only a message's first bytes, and passes on or drops the rest as it arrives, so that each byte is processed a single time.
 */
import { SCREEN_SIZE } from "../../../../shared/api/screen.ts";
import { MAX_CUT_TEXT_BYTES, RfbError } from "./limits.ts";
import { EXTENDED_CLIPBOARD, SECURITY_NONE, setEncodings, takeNoClipboard, VERSION_LINE } from "./messages.ts";

/** Sent to the server before all messages of a view-only viewer. */
const NO_CLIPBOARD = Buffer.concat([setEncodings([EXTENDED_CLIPBOARD]), takeNoClipboard()]);
const ENCODINGS = 2;

/** Maximum of encodings in a viewer's list: noVNC lists about thirty. */
const MAX_ENCODINGS = 128;
const MAX_FENCE_BYTES = 64;
/** Length of the longest head, and of the data before messages. */
const MAX_HELD_BYTES = 16;

interface Message {
  /** Number of bytes after which the message's length is known. */
  head: number;
  /** Throws RfbError for a message above the maximum length. */
  length(head: Buffer): number;
  /** Viewers from which the message passes; a message that passes from none is dropped. */
  passes: "all" | "drivers" | "nobody";
  /** Whether this message passes, from a viewer that may send its type. */
  isGood?(head: Buffer): boolean;
}

const fixed = (bytes: number, passes: Message["passes"]): Message => ({ head: 1, length: () => bytes, passes });

const MESSAGES: Readonly<Record<number, Message>> = {
  /** Pixel format. */
  0: fixed(20, "all"),
  [ENCODINGS]: { head: 4, length: (head) => 4 + 4 * atMost(MAX_ENCODINGS, head.readUInt16BE(2)), passes: "all" },
  /** Requests an update. */
  3: fixed(10, "all"),
  /** Key. */
  4: fixed(8, "drivers"),
  /** Pointer; with more than seven buttons it has one byte more. */
  5: { head: 2, length: (head) => (head.readUInt8(1) & 0x80 ? 7 : 6), passes: "drivers" },
  /** Clipboard; the extended kind has a negative length. */
  6: { head: 8, length: (head) => 8 + atMost(MAX_CUT_TEXT_BYTES, Math.abs(head.readInt32BE(4))), passes: "drivers" },
  /** Updates without requests. */
  150: fixed(10, "all"),
  /** Fence, by which viewer and server measure their round-trip time. */
  248: { head: 9, length: (head) => 9 + atMost(MAX_FENCE_BYTES, head.readUInt8(8)), passes: "all" },
  /** Shutdown and reboot of the machine: a viewer that drives the screen must not end the sandbox. */
  250: fixed(4, "nobody"),
  /** Another size of the screen, with a list of monitors. */
  251: {
    head: 8,
    length: (head) => 8 + 16 * head.readUInt8(6),
    passes: "drivers",
    isGood: (head) => isScreenSize(head.readUInt16BE(2), head.readUInt16BE(4)),
  },
  /** A key with its scan code, as QEMU's servers accept it. */
  255: {
    head: 2,
    length: (head) => (head.readUInt8(1) === 0 ? 12 : never(`255.${head.readUInt8(1)}`)),
    passes: "drivers",
  },
};

export class ClientFilter {
  readonly #drives: boolean;
  #step: "version" | "security" | "shared" | "messages" | "encodings" = "version";
  readonly #held = Buffer.alloc(MAX_HELD_BYTES);
  #heldBytes = 0;
  /** Remaining bytes of the current message, and whether they are forwarded. */
  #left = 0;
  #passes = false;
  /** For a view-only viewer: remaining encodings, and whether the clipboard's extension was among the earlier ones. */
  #encodings = 0;
  #isExtended = false;
  /** How many messages there were. */
  messages = 0;

  constructor(drives: boolean) {
    this.#drives = drives;
  }

  /** Returns the bytes to forward. Throws RfbError for messages that viewers may not send. */
  take(bytes: Uint8Array): Uint8Array {
    const passed: Uint8Array[] = [];
    for (let at = 0; at < bytes.byteLength; ) {
      if (this.#left === 0) {
        this.#held[this.#heldBytes++] = Number(bytes[at++]);
        const prefix = this.#begin();
        if (prefix) passed.push(prefix);
        continue;
      }
      const part = bytes.subarray(at, at + this.#left);
      if (this.#passes) passed.push(part);
      this.#left -= part.byteLength;
      at += part.byteLength;
    }
    return Buffer.concat(passed);
  }

  /** Once the buffered head contains the message's length: returns the head, if it passes. */
  #begin(): Uint8Array | null {
    if (this.#step === "encodings") return this.#encoding();
    if (this.#step !== "messages") return this.#greet();
    const type = this.#held.readUInt8(0);
    const message = MESSAGES[type] ?? never(String(type));
    if (this.#heldBytes < message.head) return null;
    this.messages++;
    if (type === ENCODINGS && !this.#drives) return this.#beginEncodings(message.length(this.#held));
    this.#left = message.length(this.#held) - this.#heldBytes;
    const isLet = message.passes === "all" || (message.passes === "drivers" && this.#drives);
    this.#passes = isLet && (message.isGood?.(this.#held) ?? true);
    const head = this.#cut();
    return this.#passes ? head : null;
  }

  /** The server applies the last list of encodings. */
  #beginEncodings(length: number): Uint8Array {
    const head = this.#cut();
    this.#encodings = (length - head.byteLength) / 4;
    this.#isExtended = false;
    this.#step = "encodings";
    if (this.#encodings === 0) this.#endEncodings();
    return head;
  }

  #encoding(): Uint8Array | null {
    if (this.#heldBytes < 4) return null;
    const encoding = this.#cut();
    this.#isExtended ||= encoding.readInt32BE() === EXTENDED_CLIPBOARD;
    if (--this.#encodings === 0) this.#endEncodings();
    return encoding;
  }

  /** Without the extension the server would send copied text, despite the earlier declaration. */
  #endEncodings(): void {
    if (!this.#isExtended) throw new RfbError(`a view-only viewer must request encoding ${EXTENDED_CLIPBOARD}`);
    this.#step = "messages";
  }

  #greet(): Uint8Array | null {
    if (this.#step === "version") {
      if (this.#heldBytes < VERSION_LINE.length) return null;
      const line = this.#cut();
      if (line.toString("latin1") !== VERSION_LINE) throw new RfbError("a viewer must speak RFB 3.8");
      this.#step = "security";
      return line;
    }
    const [choice] = this.#cut();
    if (this.#step === "security") {
      if (choice !== SECURITY_NONE) throw new RfbError("a viewer must choose no security");
      this.#step = "shared";
      return Uint8Array.of(SECURITY_NONE);
    }
    this.#step = "messages";
    // Always shared: no viewer may disconnect others.
    const shared = Uint8Array.of(1);
    return this.#drives ? shared : Buffer.concat([shared, NO_CLIPBOARD]);
  }

  #cut(): Buffer {
    const cut = Buffer.from(this.#held.subarray(0, this.#heldBytes));
    this.#heldBytes = 0;
    return cut;
  }
}

function isScreenSize(width: number, height: number): boolean {
  const { least, most } = SCREEN_SIZE;
  return width >= least.width && height >= least.height && width <= most.width && height <= most.height;
}

function atMost(most: number, count: number): number {
  if (count > most) throw new RfbError(`a viewer's message of ${count} is longer than ${most}`);
  return count;
}

function never(type: string): never {
  throw new RfbError(`a viewer may not send messages of type ${type}`);
}
