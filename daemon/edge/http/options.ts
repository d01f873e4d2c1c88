/** Where and how the HTTP door listens. */

import type { Certificate } from "../../core/certificate.ts";
import type { Range } from "../../domain/egress/addresses.ts";

export interface HttpOptions {
  hostname: string;
  port: number;
  /** How clients reach the service: browsers there may open WebSockets. */
  url: string;
  tls: Certificate | null;
  /** Proxies that say who asks. */
  trusted_proxies: readonly Range[];
}
