/** Finds this host's own addresses. */
import { networkInterfaces } from "node:os";
import { monotonicMs } from "../../core/clock.ts";
import type { Address } from "./addresses.ts";
import { readAddress } from "./addresses.ts";

/** Addresses come and go seldom. */
const KNOWN_FOR_MS = 2_000;

/** Reads the host's addresses from the kernel, cached for `KNOWN_FOR_MS`. */
export function makeIsHosts(): (address: Address) => boolean {
  let known = new Set<string>();
  let at = Number.NEGATIVE_INFINITY;
  return ({ family, value }) => {
    if (monotonicMs() - at > KNOWN_FOR_MS) {
      known = new Set(
        Object.values(networkInterfaces()).flatMap((each = []) =>
          each.flatMap(({ address }) => {
            const own = readAddress(address.replace(/%.*$/, ""));
            return own ? [`${own.family} ${own.value}`] : [];
          }),
        ),
      );
      at = monotonicMs();
    }
    return known.has(`${family} ${value}`);
  };
}
