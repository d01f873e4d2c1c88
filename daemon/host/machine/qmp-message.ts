/**
 * Valid messages of QEMU's monitor: lines of JSON of three kinds, bounded in length and in number. Pure. A QEMU that was compromised by its
 * guest may write anything, so every other message is an error and nothing else.
 */
import { parseJson } from "../../core/json.ts";
import { Allowance } from "../guest-link/pace.ts";

export interface QmpEvent {
  event: string;
  data: Record<string, unknown>;
}

export type QmpMessage =
  | { kind: "greeting" }
  | ({ kind: "event" } & QmpEvent)
  | { kind: "return"; id: number; value: unknown }
  | { kind: "refusal"; id: number; message: string };

/** QEMU has sent a message that no QEMU sends: it is not trusted any more. */
export class NonsenseError extends Error {
  override name = "NonsenseError";

  constructor(why: string, options?: ErrorOptions) {
    super(`QEMU violated the QMP protocol: ${why}`, options);
  }
}

/** The longest answer that we request has a few KiB. */
export const MAX_LINE_BYTES = 1024 * 1024;
/** A guest can cause some ten events a second, a limit set by QEMU. */
export const MAX_LINES_PER_SECOND = 2_000;
const MAX_BYTES_PER_SECOND = 4 * MAX_LINE_BYTES;
const MAX_REFUSAL_CHARACTERS = 1000;
const NEWLINE = 10;

/** Splits incoming bytes into lines. */
export class QmpLines {
  readonly #bytes = new Allowance(MAX_BYTES_PER_SECOND, MAX_BYTES_PER_SECOND);
  readonly #lines = new Allowance(MAX_LINES_PER_SECOND, MAX_LINES_PER_SECOND);
  /** The start of an incomplete line. */
  #pieces: Uint8Array[] = [];
  #length = 0;

  /** Yields the lines that are complete now, in order, without empty ones. Throws NonsenseError when they are too long or too many. */
  *push(chunk: Uint8Array): Generator<string> {
    this.#bytes.spend(chunk.byteLength);
    if (this.#bytes.debtMs() > 0) throw new NonsenseError("it sent too many bytes in a second");
    let from = 0;
    for (let end = chunk.indexOf(NEWLINE); end >= 0; end = chunk.indexOf(NEWLINE, from)) {
      this.#keep(chunk.subarray(from, end));
      from = end + 1;
      const line = Buffer.concat(this.#pieces).toString().trim();
      this.#pieces = [];
      this.#length = 0;
      if (!this.#lines.take()) throw new NonsenseError("it sent too many messages in a second");
      if (line !== "") yield line;
    }
    // The chunk's memory is reused for the next chunk.
    this.#keep(chunk.slice(from));
  }

  #keep(piece: Uint8Array): void {
    this.#length += piece.byteLength;
    if (this.#length > MAX_LINE_BYTES) throw new NonsenseError(`a line has more than ${MAX_LINE_BYTES} bytes`);
    if (piece.byteLength > 0) this.#pieces.push(piece);
  }
}

/** Throws NonsenseError. Unknown members are allowed, because QEMU may add them. */
export function readMessage(line: string): QmpMessage {
  const message = parse(line);
  if (!isObject(message)) throw new NonsenseError("a line is not an object");
  if ("QMP" in message) return { kind: "greeting" };
  if ("event" in message) {
    const { event, data = {} } = message;
    if (typeof event !== "string" || !isObject(data)) throw new NonsenseError("an event is malformed");
    return { kind: "event", event, data };
  }
  const { id } = message;
  if (typeof id !== "number" || !Number.isSafeInteger(id)) throw new NonsenseError("an answer names no command");
  if ("return" in message) return { kind: "return", id, value: message.return };
  if (!isObject(message.error) || typeof message.error.desc !== "string")
    throw new NonsenseError("an answer is malformed");
  return { kind: "refusal", id, message: message.error.desc.slice(0, MAX_REFUSAL_CHARACTERS) };
}

function parse(line: string): unknown {
  try {
    return parseJson(line);
  } catch (error) {
    // Includes JSON that is nested too deep.
    throw new NonsenseError("a line is not JSON", { cause: error });
  }
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
