/** Bounds of a JSON body that apply before it is parsed: bytes outside of its strings, and values in a body of over 64 KiB. */
import { DEFAULT_MAX_BODY_BYTES } from "../../shared/api/contract.ts";
import { JsonOutline, MOST_JSON_VALUES } from "../core/json-outline.ts";
import { ServiceError } from "../core/service-error.ts";

/** Bodies may be longer for the sake of long texts in them, not of more fields. */
const MOST_BYTES = DEFAULT_MAX_BODY_BYTES;
const SHORT_BYTES = 64 * 1024;

export class Outline {
  readonly #outline = new JsonOutline();

  /** The next bytes of it. Throws body_too_large. */
  add(bytes: Uint8Array): void {
    const outline = this.#outline;
    outline.add(bytes);
    if (outline.bytesOutside > MOST_BYTES)
      throw tooLarge(`Outside of its texts the body is over ${MOST_BYTES} bytes.`, { max_bytes: MOST_BYTES });
    if (outline.bytes > SHORT_BYTES && outline.values > MOST_JSON_VALUES)
      throw tooLarge(`The body has over ${MOST_JSON_VALUES} values.`, { max_values: MOST_JSON_VALUES });
  }
}

const tooLarge = (detail: string, details: Record<string, number>) =>
  new ServiceError("body_too_large", { detail, details });
