/** Injected dependencies of the SSH module: the modules, settings and callbacks that it is given. */
import type { Log } from "../../core/log.ts";
import type { Database } from "../../db/transact.ts";
import type { Orgs } from "../orgs/index.ts";
import type { SandboxReach } from "../sandboxes/access.ts";
import type { Terminals } from "../terminals/index.ts";

/** Address by which clients reach the gateway. */
export interface Gateway {
  host: string;
  port: number;
  /** In the format of known_hosts, without a host name. */
  host_key: string;
  host_key_fingerprint: string;
}

export interface SshDeps {
  database: Database;
  log: Log;
  sandboxes: SandboxReach;
  /** Registers a writer at a terminal; the returned function removes it. */
  sit: Terminals["sit"];
  orgs: Pick<Orgs, "authenticate" | "isCurrent" | "holds" | "ssh">;
  /** null while absent. */
  gateway(): Gateway | null;
}
