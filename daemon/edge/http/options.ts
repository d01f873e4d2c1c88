/** Address and options of the HTTP listener. */

import type { Certificate } from "../../core/config/certificate.ts";
import type { Range } from "../../domain/egress/addresses.ts";

export interface HttpOptions {
  hostname: string;
  port: number;
  /** How clients reach the service: browsers there may open WebSockets. */
  url: string;
  tls: Certificate | null;
  /** Proxies with a trusted X-Forwarded-For. */
  trusted_proxies: readonly Range[];
}
