/**
 * An organization's public SSH keys: add, list and remove them, and find the callers of one.
 * The expiry of a key with the API key that added it is in grant.ts.
 */
import { type SshKeyRecord, sshKeyAdd, sshKeyList, sshKeyRemove } from "../../../shared/api/ssh.ts";
import { type KeyId, newId, type OrgId } from "../../../shared/ids.ts";
import { type Bound, bind, type Caller } from "../../core/call/operation.ts";
import { after, now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import { endBy } from "./grant.ts";
import type { OrgChanges } from "./org-changes.ts";
import { findSshKeys, isSshKey, listSshKeys } from "./ssh-keys-store.ts";
import { fingerprintOf, readPublicKey } from "./ssh-public-key.ts";
import type { SshKeyRow } from "./table.ts";

/** A caller authenticated by public key may use an SSH session, and nothing else. */
const SCOPES = ["terminal"] as const;

export interface NewSshKey {
  public_key: string;
  name?: string | undefined;
  expires_in_seconds?: number | undefined;
}

export interface SshKeysDeps {
  database: Database;
  changes: OrgChanges;
  findOrg(caller: Caller, orgId: string): string;
  /** Called when a key has been removed. */
  onRemoved(): void;
}

export function makeSshKeys({ database, changes, findOrg, onRemoved }: SshKeysDeps): Bound[] {
  return [
    bind(sshKeyAdd, {
      find: (call, params) => findOrg(call.caller, String(params.org_id)) as OrgId,
      rules: (input) => {
        const read = readPublicKey(input.public_key ?? "");
        return "wrong" in read ? [{ field: "public_key", code: "invalid_public_key", message: read.wrong }] : [];
      },
      run: async (call, input, orgId) => {
        const { caller, audit } = call;
        if (!caller.scopes.includes("terminal") && !caller.scopes.includes("org:admin")) {
          throw new ServiceError("scope_escalation", {
            detail: "A public SSH key opens terminals, and the API key that adds it has no scope for that.",
          });
        }
        const made = newSshKey(orgId, input, { type: "key", id: caller.key_id });
        const key = { ...made, expires_at: endBy(caller, made.expires_at) };
        const body = await changes.addSshKey(key, (_queries, row) => {
          const added = toRecord(row);
          audit.details = { ssh_key_id: added.ssh_key_id, fingerprint: added.fingerprint, name: added.name };
          call.work.keep("created", added);
          return added;
        });
        return { outcome: "created", body };
      },
    }),
    bind(sshKeyList, {
      find: (call, params) => findOrg(call.caller, String(params.org_id)) as OrgId,
      run: (_, __, orgId) => ({
        outcome: "ok",
        body: { items: listSshKeys(database.queries, orgId).map(toRecord), next_cursor: null },
      }),
    }),
    bind(sshKeyRemove, {
      find: (call, params) => findOrg(call.caller, String(params.org_id)) as OrgId,
      run: async ({ audit }, { ssh_key_id }, orgId) => {
        audit.details = { ssh_key_id };
        const { fingerprint } = await changes.removeSshKey(orgId, ssh_key_id, (_queries, removed) => removed);
        onRemoved();
        return { outcome: "ok", body: { ssh_key_id, fingerprint, state: "removed" as const } };
      },
    }),
  ];
}

/** Throws validation_failed. */
export function newSshKey(orgId: OrgId, request: NewSshKey, maker: { type: string; id: string }): SshKeyRow {
  const read = readPublicKey(request.public_key);
  if ("wrong" in read) throw new ServiceError("validation_failed", { detail: read.wrong });
  const created_at = now();
  return {
    ssh_key_id: newId("ssk"),
    org_id: orgId,
    name: (request.name ?? read.comment).slice(0, 128),
    algorithm: read.algorithm,
    fingerprint: read.fingerprint,
    public_key: read.line,
    created_at,
    expires_at: request.expires_in_seconds === undefined ? null : after(created_at, request.expires_in_seconds),
    created_by_type: maker.type,
    created_by_id: maker.id,
  };
}

/** Callers of a public key in SSH's own encoding: one for each organization that has it, the oldest first. */
export function callersOf(queries: Queries, key: Buffer): Caller[] {
  return findSshKeys(queries, fingerprintOf(key)).map((found) => ({
    org_id: found.key.org_id,
    plan: found.plan,
    key_id: found.key.ssh_key_id as string as KeyId,
    name: found.key.name || found.key.fingerprint,
    scopes: SCOPES,
    room_ids: null,
    agent_id: null,
    expires_at: found.key.expires_at,
  }));
}

/** Whether a public key is still registered. */
export function isCurrentSshKey(queries: Queries, id: string): boolean {
  return isSshKey(queries, id);
}

export function toRecord({ org_id: _, created_by_type, created_by_id, ...row }: SshKeyRow): SshKeyRecord {
  return { ...row, created_by: { type: created_by_type, id: created_by_id } };
}
