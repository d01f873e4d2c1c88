/** Rate limits of keys, guests and clients of exposed ports, from the configuration. */
import type { Config } from "../core/config/config.ts";

export type AllRates = ReturnType<typeof ratesOf>;

export function ratesOf(config: Config) {
  return {
    keys: { perSecond: config["limits.requests_per_second"], burst: config["limits.requests_at_once"] },
    guests: { perSecond: config["limits.guest_requests_per_second"], burst: config["limits.guest_requests_at_once"] },
    ports: { perSecond: config["limits.port_requests_per_second"], burst: config["limits.port_requests_at_once"] },
  };
}
