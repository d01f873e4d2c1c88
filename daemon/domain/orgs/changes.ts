/** Changes to organizations, API keys and public SSH keys: one transaction checks the rules and changes the rows. */
import { MAX_KEYS, MAX_KEYS_A_DAY, MAX_ROTATIONS_A_DAY } from "../../../shared/api/orgs.ts";
import { MAX_SSH_KEYS } from "../../../shared/api/ssh.ts";
import { type KeyId, newId, type OrgId, type UserId, ulidFrom } from "../../../shared/ids.ts";
import { now } from "../../core/clock.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import { type Database, violatesUnique } from "../../db/transact.ts";
import { isGood } from "./keys.ts";
import { type MadeEnds, nothingEnded } from "./made.ts";
import type { EndedAccess, Ending, OrgChanges } from "./org-changes.ts";
import { countSshKeys, deleteSshKey, deleteSshKeysOf, insertSshKey } from "./ssh-keys-store.ts";
import {
  changeKey,
  changeOrg,
  countKeys,
  countKeysSince,
  deleteKeys,
  endKey,
  endKeysBeyond,
  getKey,
  getOrg,
  grantsBy,
  insertKey,
  insertOrg,
  lineOf,
  listEveryOrg,
  prepareUse,
  removeEndedKeys,
  revokeKeys,
} from "./store.ts";
import type { KeyRow, NewOrgRow, OrgRow, SshKeyRow } from "./table.ts";

/** Keys deleted by one change: every host applies it in one turn of its event loop. */
const KEYS_TOGETHER = 200;

export interface MakerRules extends MadeEnds {
  /** Throws if the maker of a key lacks the rights to make it. Called in the transaction that adds the key. */
  requireMaker(queries: Queries, key: KeyRow): void;
}

export function makeOrgChanges(database: Database, { requireMaker, endMade, isAnyOver }: MakerRules): OrgChanges {
  const use = prepareUse(database.queries);
  return {
    addOrg: ({ org, keys, isFirst = false }, within) =>
      database.commit((queries) => {
        if (isFirst && listEveryOrg(queries).length > 0) throw initialized();
        addOrg(queries, org);
        for (const key of keys) addKey(queries, key, requireMaker);
        return within(queries, org);
      }),

    setPlan: (orgId, decide, within) =>
      database.commit((queries) => {
        const before = requireOrg(queries, orgId);
        const change = decide(before);
        if (change) changeOrg(queries, orgId, change);
        return within(queries, { before, change });
      }),

    endOrg: (orgId, require, within) =>
      database.commit((queries) => {
        require(queries);
        const org = requireOrg(queries, orgId);
        const keys_revoked = revokeKeys(queries, orgId, now());
        deleteSshKeysOf(queries, orgId);
        endMade(queries, orgId);
        changeOrg(queries, orgId, { ending_at: now() });
        return within(queries, { org, keys_revoked });
      }),

    dropOrgKeys: async (orgId) => {
      const page = (queries: Queries) => deleteKeys(queries, orgId, KEYS_TOGETHER);
      while ((await database.commit(page, true)) === KEYS_TOGETHER);
    },

    finishOrg: (orgId, within) =>
      database.commit((queries) => {
        const org = getOrg(queries, orgId);
        if (!org || org.ended_at !== null) throw new ServiceError("org_not_found");
        deleteKeys(queries, orgId, KEYS_TOGETHER);
        changeOrg(queries, orgId, { ended_at: now(), name: orgId });
        return within(queries, org);
      }),

    addKey: (key, within) =>
      database.commit((queries) => {
        if (key.org_id !== null) requireOrg(queries, key.org_id);
        addKey(queries, key, requireMaker);
        return within(queries, key);
      }),

    rotateKey: (keyId, rotate, within) =>
      database.commit((queries) => {
        const rotation = rotate(currentKey(queries, keyId));
        addKey(queries, rotation.row, requireMaker);
        const replaced = changeKey(queries, keyId, rotation.change);
        return within(queries, { ...rotation, replaced });
      }),

    revokeKey: (keyId, within) =>
      database.commit((queries) => {
        const { key_id } = currentKey(queries, keyId);
        const key = endKey(queries, key_id);
        return within(queries, { key, made: key.org_id === null ? nothingEnded() : endMade(queries, key.org_id) });
      }),

    endAccess: (orgId, userId, ending, within) =>
      database.commit((queries) => {
        ending.require(queries);
        return within(queries, endAccess(queries, orgId, userId, ending, endMade));
      }),

    endAccessEverywhere: (userId, { require, change }, within) =>
      database.commit((queries) => {
        const ended = require(queries).map((org_id) => {
          const leaving = { gives: [], change: () => change(queries, org_id) };
          return { org_id, ...endAccess(queries, org_id, userId, leaving, endMade) };
        });
        return within(queries, ended);
      }),

    endGrantsOf: (userId, within) =>
      database.commit((queries) => {
        const ended = grantsBy(queries, userId).map(({ key_id }) => endKey(queries, key_id, { withMaker: true }));
        for (const orgId of new Set(ended.flatMap(({ org_id }) => org_id ?? []))) endMade(queries, orgId);
        return within(queries, ended);
      }),

    endMadeIn: async (orgId) => {
      if (isAnyOver(database.queries, orgId)) await database.commit((queries) => endMade(queries, orgId));
    },

    addSshKey: (key, within) =>
      database.commit((queries) => {
        requireOrg(queries, key.org_id);
        addSshKey(queries, key);
        return within(queries, key);
      }),

    removeSshKey: (orgId, sshKeyId, within) =>
      database.commit((queries) => {
        const removed = deleteSshKey(queries, orgId, sshKeyId);
        if (!removed) throw new ServiceError("key_not_found", { detail: `There is no public key ${sshKeyId}.` });
        return within(queries, removed);
      }),

    dropKeys: (ids, before) => database.commit((queries) => removeEndedKeys(queries, ids, before), false),

    noteUses: (uses) =>
      database.commit(() => {
        for (const { key_id, last_used_at, unless_after } of uses) use.run({ key_id, last_used_at, unless_after });
      }, false),
  };
}

function endAccess(
  queries: Queries,
  org_id: OrgId,
  user_id: UserId,
  { gives, change }: Pick<Ending, "gives" | "change">,
  endMade: MadeEnds["endMade"],
): EndedAccess {
  const keys = endKeysBeyond(queries, { org_id, user_id, gives }, now());
  change(queries);
  return { keys, made: endMade(queries, org_id) };
}

function addOrg(queries: Queries, org: NewOrgRow): void {
  try {
    insertOrg(queries, org);
  } catch (error) {
    if (!violatesUnique(error, "orgs.name")) throw error;
    throw new ServiceError("already_exists", { detail: `There is an organization named ${org.name}.`, cause: error });
  }
}

const DAY_MS = 86_400_000;

function addKey(queries: Queries, key: KeyRow, requireMaker: MakerRules["requireMaker"]): void {
  requireGoodMaker(queries, key);
  requireMaker(queries, key);
  requireFew(queries, key);
  insertKey(queries, key);
}

/**
 * Rows of revoked and expired keys are retained: an organization must not fill the database with them. Keys made by one member block
 * neither the rotation of a key nor the operator's new keys. Throws quota_exceeded.
 */
function requireFew(queries: Queries, { org_id, first_key_id, created_by_type, created_at }: KeyRow): void {
  if (org_id === null) return;
  const sinceMs = Date.parse(created_at) - DAY_MS;
  if (first_key_id !== null) {
    requireFewRotations(queries, first_key_id, sinceMs);
    return;
  }
  if (countKeys(queries, org_id, created_at) >= MAX_KEYS) {
    throw new ServiceError("quota_exceeded", { detail: `An organization may have ${MAX_KEYS} API keys.` });
  }
  if (created_by_type === "operator") return;
  if (countKeysSince(queries, org_id, sinceMs, MAX_KEYS_A_DAY) < MAX_KEYS_A_DAY) return;
  throw new ServiceError("quota_exceeded", {
    detail: `An organization may create ${MAX_KEYS_A_DAY} API keys in 24 hours.`,
    hint: "Reuse keys, or rotate fewer of them.",
  });
}

function requireFewRotations(queries: Queries, firstKeyId: KeyId, sinceMs: number): void {
  const recent = lineOf(queries, { key_id: firstKeyId, first_key_id: firstKeyId }).filter(
    ({ key_id }) => key_id > newId("kid", ulidFrom(sinceMs, new Uint8Array(0))),
  );
  if (recent.length <= MAX_ROTATIONS_A_DAY) return;
  throw new ServiceError("quota_exceeded", {
    detail: `A key may be rotated ${MAX_ROTATIONS_A_DAY} times in 24 hours.`,
    hint: "Create another key, and revoke this key.",
  });
}

function addSshKey(queries: Queries, key: SshKeyRow): void {
  requireGoodMaker(queries, key);
  if (countSshKeys(queries, key.org_id) >= MAX_SSH_KEYS) {
    throw new ServiceError("quota_exceeded", { detail: `An organization may have ${MAX_SSH_KEYS} public keys.` });
  }
  try {
    insertSshKey(queries, key);
  } catch (error) {
    if (!violatesUnique(error, "ssh_keys.fingerprint")) throw error;
    throw new ServiceError("already_exists", { detail: `The organization already has the key ${key.fingerprint}.` });
  }
}

/**
 * A key that was revoked or expired since its call arrived makes nothing any more: things that it had made have already ended. Throws
 * invalid_api_key.
 */
function requireGoodMaker(queries: Queries, made: Pick<KeyRow, "created_by_type" | "created_by_id">): void {
  if (made.created_by_type !== "key") return;
  const maker = getKey(queries, made.created_by_id);
  if (!maker || !isGood(maker))
    throw new ServiceError("invalid_api_key", { detail: "The key was revoked or expired during the call." });
}

function requireOrg(queries: Queries, orgId: OrgId): OrgRow {
  const org = getOrg(queries, orgId);
  if (!org) throw new ServiceError("org_not_found");
  if (org.ending_at !== null) throw new ServiceError("org_not_found", { detail: "The organization is ending." });
  return org;
}

function currentKey(queries: Queries, keyId: KeyId): KeyRow {
  const row = getKey(queries, keyId);
  if (!row || row.revoked_at !== null) throw new ServiceError("key_not_found", { detail: `There is no key ${keyId}.` });
  return row;
}

function initialized(): ServiceError {
  return new ServiceError("already_exists", {
    detail: "This service is already initialized. Its keys were shown once and cannot be shown again.",
    hint: "Create another key with `roomd key create --org ORG_ID --name NAME`.",
  });
}
