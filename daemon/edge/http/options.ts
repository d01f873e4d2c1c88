/** Address and options of the HTTP listener. */

import type { Certificate } from "../../core/config/certificate.ts";
import type { Range } from "../../domain/egress/addresses.ts";

export interface HttpOptions {
  hostname: string;
  port: number;
  /** URL of the service for clients: browsers at this origin may open WebSockets. */
  url: string;
  tls: Certificate | null;
  /** Proxies with a trusted X-Forwarded-For. */
  trusted_proxies: readonly Range[];
}
