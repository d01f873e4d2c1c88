/** Data that the daemon embeds in the page of the hub. */
import type { Role } from "../api/people/members.ts";

export interface Boot {
  /** Public URL of the service, without a trailing slash. */
  url: string;
  version: string;
  user: { name: string; email: string; role: Role };
  org: { org_id: string; name: string };
  /** Whether the service has several hosts, and whether this user may see their state. */
  has_hosts: boolean;
  sees_hosts: boolean;
  /** CSP nonce for styles that the page adds later. */
  style_nonce: string;
}
