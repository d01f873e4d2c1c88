/** What SSH needs of others. */
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { Orgs } from "../orgs/index.ts";
import type { SandboxReach } from "../sandboxes/access.ts";
import type { Terminals } from "../terminals/index.ts";

/** Where clients reach the gateway. */
export interface Gateway {
  host: string;
  port: number;
  /** As in a file known_hosts, without the name of a host. */
  host_key: string;
  host_key_fingerprint: string;
}

export interface SshDeps {
  database: Database;
  log: Log;
  sandboxes: SandboxReach;
  /** Says who types at a terminal; what is returned says that they have left. */
  sit: Terminals["sit"];
  orgs: Pick<Orgs, "authenticate" | "isCurrent" | "holds" | "ssh">;
  /** null while there is none. */
  gateway(): Gateway | null;
}
