/** SSH without its protocol: authentication to a sandbox, channels of a session, and disconnection on revocation. */

import type { Bound } from "../../core/call/operation.ts";
import { makeAccessCalls } from "./access.ts";
import { byPassword, byPublicKey, type Credential, hashOfToken, TOKEN_PREFIX } from "./credentials.ts";
import type { SshDeps } from "./deps.ts";
import { Sessions } from "./sessions.ts";
import { findAccessByToken } from "./store.ts";
import { makeVerbs, type SshVerbs } from "./verbs.ts";

export type { Credential } from "./credentials.ts";
export { forgetAccesses, locateAccess } from "./store.ts";
export type { HeldSandbox, LoggedIn } from "./verbs.ts";

export interface Ssh {
  operations: Bound[];
  /** Throws invalid_api_key, api_key_expired. */
  byPassword(password: string): Credential;
  /** One credential per organization with the key, the oldest first. */
  byPublicKey(key: Buffer): Credential[];
  /** The hash of a password that another host may have issued; null: it does not have that form. */
  accessHash(password: string): string | null;
  /** Whether this host has issued an access with this hash. */
  hasAccess(hash: string): boolean;
  verbs: SshVerbs;
  sessions: Sessions;
}

export function makeSsh(deps: SshDeps): Ssh {
  const sessions = new Sessions(deps);
  return {
    operations: makeAccessCalls(deps, sessions),
    byPassword: (password) => byPassword(deps, password),
    byPublicKey: (key) => byPublicKey(deps, key),
    accessHash: (password) => (password.startsWith(TOKEN_PREFIX) ? hashOfToken(password) : null),
    hasAccess: (hash) => findAccessByToken(deps.database.queries, hash) !== undefined,
    verbs: makeVerbs(deps),
    sessions,
  };
}
