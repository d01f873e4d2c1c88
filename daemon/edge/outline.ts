/**
 * Owns what of JSON is outside of its strings, counted before it is read: of that reading makes many small things, which take a hundred
 * times as long as a string of the same length, and everybody waits meanwhile.
 */
import { DEFAULT_MAX_BODY_BYTES } from "../../shared/api/contract.ts";
import { ServiceError } from "../core/service-error.ts";

/** Bodies may be longer for the sake of long texts in them, not of more fields. */
const MOST_BYTES = DEFAULT_MAX_BODY_BYTES;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;

export class Outline {
  #isInString = false;
  #isEscaped = false;
  #bytes = 0;

  /** The next bytes of it. Throws body_too_large. */
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
    }
    [this.#isInString, this.#isEscaped] = [isInString, isEscaped];
    if (this.#bytes <= MOST_BYTES) return;
    throw new ServiceError("body_too_large", {
      detail: `Outside of its texts the body is over ${MOST_BYTES} bytes.`,
      details: { max_bytes: MOST_BYTES },
    });
  }
}
