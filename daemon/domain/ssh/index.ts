/** Owns SSH as far as it is no protocol: who may log in to a sandbox, what a session may open there, and when it is cut. */
import type { Log } from "../../core/log.ts";
import type { Bound } from "../../core/operation.ts";
import type { Database } from "../../db/transact.ts";
import type { Orgs } from "../orgs/index.ts";
import type { SandboxReach } from "../sandboxes/access.ts";
import { makeAccessCalls } from "./access.ts";
import { byPassword, byPublicKey, type Credential } from "./credentials.ts";
import { Sessions } from "./sessions.ts";
import { makeVerbs, type SshVerbs } from "./verbs.ts";

export type { Credential } from "./credentials.ts";
export type { Held, LoggedIn } from "./verbs.ts";

/** Where clients reach the gateway. */
export interface Gateway {
  host: string;
  port: number;
  host_key_fingerprint: string;
}

export interface SshDeps {
  database: Database;
  log: Log;
  sandboxes: SandboxReach;
  orgs: Pick<Orgs, "authenticate" | "isCurrent" | "holds" | "ssh">;
  /** null while there is none. */
  gateway(): Gateway | null;
  sessions: Sessions;
}

export interface Ssh {
  operations: Bound[];
  /** Throws invalid_api_key, api_key_expired. */
  byPassword(password: string): Credential;
  /** One for each organization that has the key, the oldest first. */
  byPublicKey(key: Buffer): Credential[];
  verbs: SshVerbs;
  sessions: Sessions;
}

export function makeSsh(given: Omit<SshDeps, "sessions">): Ssh {
  const deps: SshDeps = { ...given, sessions: new Sessions(given) };
  return {
    operations: makeAccessCalls(deps),
    byPassword: (password) => byPassword(deps, password),
    byPublicKey: (key) => byPublicKey(deps, key),
    verbs: makeVerbs(deps.sandboxes),
    sessions: deps.sessions,
  };
}
