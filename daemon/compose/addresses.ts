/** Addresses of this host for clients. The system may choose a port, so they are complete once the transports are open. */
import type { Gateway } from "../domain/ssh/deps.ts";

export interface Addresses {
  /** Of the API and the web. */
  url: string;
  /** Of the SSH gateway; null: none. */
  gateway: Gateway | null;
}
