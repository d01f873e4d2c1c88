/** SSH authentication: by public key, by API key as password, by the token of an ssh-access as password. */
import { createHash } from "node:crypto";
import type { Caller } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { SshDeps } from "./deps.ts";
import { findAccessByToken, isAccess } from "./store.ts";

export const TOKEN_PREFIX = "sat_";

export interface Credential {
  kind: "public_key" | "api_key" | "ssh_access";
  /** Id of the key or the access. */
  id: string;
  /** The only sandbox that it opens; null: all that its caller can see. */
  sandbox_id: string | null;
  caller: Caller;
  /** Whether it is good still. */
  isCurrent(): boolean;
}

export function hashOfToken(token: string): string {
  return createHash("sha256").update(token).digest("hex");
}

/** Throws invalid_api_key, api_key_expired. */
export function byPassword(deps: SshDeps, password: string): Credential {
  if (!password.startsWith(TOKEN_PREFIX)) {
    const caller = deps.orgs.authenticate(`Bearer ${password}`);
    const isCurrent = () => deps.orgs.isCurrent(caller.key_id);
    return { kind: "api_key", id: caller.key_id, sandbox_id: null, caller, isCurrent };
  }
  const row = findAccessByToken(deps.database.queries, hashOfToken(password));
  if (!row) throw new ServiceError("invalid_api_key");
  const { access_id: id, sandbox_id, caller } = row;
  const isCurrent = () => isAccess(deps.database.queries, id) && deps.orgs.isCurrent(caller.key_id);
  if (!isCurrent()) throw new ServiceError("invalid_api_key");
  return { kind: "ssh_access", id, sandbox_id, caller, isCurrent };
}

/** One credential per organization with the key, the oldest first. `key` is in SSH's wire encoding. */
export function byPublicKey({ orgs }: SshDeps, key: Buffer): Credential[] {
  return orgs.ssh.callersOf(key).map((caller) => ({
    kind: "public_key",
    id: caller.key_id,
    sandbox_id: null,
    caller,
    isCurrent: () => orgs.ssh.isCurrent(caller.key_id),
  }));
}
