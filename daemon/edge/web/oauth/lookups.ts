/** Rate limit per address for fetching applications' documents, over all endpoints. */
import { ServiceError } from "../../../core/service-error.ts";
import { networkOf } from "../../../domain/egress/addresses.ts";
import type { Asker } from "../../../domain/oauth/index.ts";
import { AddressLimit } from "../../pipeline/address-limit.ts";

const PER_HOUR = 60;

export class Lookups {
  readonly #limit = new AddressLimit(PER_HOUR, PER_HOUR);

  of(ip: string | null): Asker {
    const requireFetch = () => {
      if (this.#limit.take(ip ?? "")) return;
      throw new ServiceError("rate_limited", {
        detail: "Too many applications were looked up from your IP address.",
        retryAfterSeconds: 3600 / PER_HOUR,
      });
    };
    return { name: networkOf(ip ?? ""), requireFetch };
  }
}
