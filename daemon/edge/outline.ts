/**
 * Owns what of JSON is outside of its strings, counted before it is read: of that reading makes many small things, which take a hundred
 * times as long as a string of the same length, and everybody waits meanwhile.
 */
import { DEFAULT_MAX_BODY_BYTES } from "../../shared/api/contract.ts";
import { ServiceError } from "../core/service-error.ts";

/** Bodies may be longer for the sake of long texts in them, not of more fields. */
const MOST_BYTES = DEFAULT_MAX_BODY_BYTES;
/** Far fewer than what reading or writing it would run out of stack with. */
const MOST_LEVELS = 512;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const OPENING: readonly number[] = [0x5b, 0x7b];
const CLOSING: readonly number[] = [0x5d, 0x7d];

export class Outline {
  #isInString = false;
  #isEscaped = false;
  #bytes = 0;
  #levels = 0;

  /** The next bytes of it. Throws body_too_large, invalid_body. */
  add(bytes: Uint8Array): void {
    let [isInString, isEscaped] = [this.#isInString, this.#isEscaped];
    for (let at = 0; at < bytes.byteLength; at++) {
      const byte = bytes[at] ?? 0;
      if (isInString) {
        if (isEscaped) isEscaped = false;
        else if (byte === BACKSLASH) isEscaped = true;
        else if (byte === QUOTE) isInString = false;
        continue;
      }
      this.#bytes++;
      if (byte === QUOTE) isInString = true;
      else if (OPENING.includes(byte)) this.#open();
      else if (CLOSING.includes(byte)) this.#levels--;
    }
    [this.#isInString, this.#isEscaped] = [isInString, isEscaped];
    if (this.#bytes <= MOST_BYTES) return;
    throw new ServiceError("body_too_large", {
      detail: `Outside of its texts the body is over ${MOST_BYTES} bytes.`,
      details: { max_bytes: MOST_BYTES },
    });
  }

  #open(): void {
    if (++this.#levels <= MOST_LEVELS) return;
    throw new ServiceError("invalid_body", { detail: `The body is nested deeper than ${MOST_LEVELS} levels.` });
  }
}
