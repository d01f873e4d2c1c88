/** Owns what the daemon tells the hub's application with its page. */
import type { Role } from "../api/members.ts";

export interface Boot {
  /** Where browsers find us, without a slash at its end. */
  url: string;
  version: string;
  user: { name: string; email: string; role: Role };
  org: { org_id: string; name: string };
  /** Whether the service has several hosts, and whether this person may see how they are. */
  has_hosts: boolean;
  sees_hosts: boolean;
  /** What a style of this page that comes later must carry. */
  style_nonce: string;
}
