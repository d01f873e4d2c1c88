/** Addresses of this host for clients. The system may choose a port, so they are complete once the transports are open. */
import type { Gateway } from "../domain/ssh/deps.ts";

export interface Addresses {
  /** URL of the API and of the web. */
  url: string;
  /** Address of the SSH gateway; null: none. */
  gateway: Gateway | null;
}
