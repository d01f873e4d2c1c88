/** Limits on a JSON body, applied as it arrives: bytes outside of its strings, and values in a long body. */
import { DEFAULT_MAX_BODY_BYTES } from "../../../shared/api/contract.ts";
import { JsonCount, MAX_VALUES } from "../../core/json.ts";
import { ServiceError } from "../../core/service-error.ts";

/** Limit outside of strings: bodies may be longer because of long texts in them, not of more fields. */
const MAX_BYTES = DEFAULT_MAX_BODY_BYTES;

export class JsonComplexity {
  readonly #count = new JsonCount();

  /** Counts the next bytes of the body. Throws body_too_large. */
  add(bytes: Uint8Array): void {
    this.#count.add(bytes);
    if (this.#count.outside > MAX_BYTES)
      throw tooLarge(`Outside of its texts the body is over ${MAX_BYTES} bytes.`, { max_bytes: MAX_BYTES });
    if (this.#count.exceeds(MAX_VALUES))
      throw tooLarge(`The body has over ${MAX_VALUES} values.`, { max_values: MAX_VALUES });
  }
}

const tooLarge = (detail: string, details: Record<string, number>) =>
  new ServiceError("body_too_large", { detail, details });
