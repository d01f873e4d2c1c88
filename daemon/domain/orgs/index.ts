/** Organizations and their keys: authentication, and the operator's changes. */

import type { KeyId, OrgId } from "../../../shared/ids.ts";
import { type Bound, boundTo, type Caller } from "../../core/call/operation.ts";
import { RevocationWatch } from "../../core/call/revocation-watch.ts";
import { ServiceError } from "../../core/service-error.ts";
import { makeOrgCreate } from "./create.ts";
import type { OrgDeps } from "./deps.ts";
import { startDropping } from "./ended-keys.ts";
import { makeKeyVerbs } from "./key-verbs.ts";
import { type Authenticate, makeAuthenticate, makeCallerOfGrant, makeIsCurrent } from "./keys.ts";
import { LastUsed } from "./last-used.ts";
import { makeMe } from "./me.ts";
import { callersOf, isCurrentSshKey, makeSshKeys } from "./ssh-keys.ts";
import { keyName, knownOrg } from "./store.ts";
import type { KeyRow } from "./table.ts";
import { makeCreditList } from "./usage/credit-list.ts";
import { makeUsage } from "./usage/usage.ts";

export { type MakerRules, makeOrgChanges } from "./changes.ts";
export { grantBy } from "./grant.ts";
export { isKeySeen } from "./key-verbs.ts";
export { isGood, newKey } from "./keys.ts";
export {
  countsOf,
  detailsOf,
  type IsOver,
  isAmongOver,
  isKeyOver,
  type MadeKind,
  type Maker,
  type MakerRule,
  madeKind,
  makeMadeEnds,
} from "./made.ts";
export { makeOperator } from "./operator.ts";
export type { EndedAccess, OrgChanges, PlanChange } from "./org-changes.ts";
export { orgsPersonal } from "./personal.ts";
export { type Caps, type PlanCaps, type Plans, plansOf } from "./plans.ts";
export {
  driveExceeded,
  driveWarning,
  makeCaps,
  makeQuota,
  type Quota,
  templatesExceeded,
  templateWarnings,
} from "./quota.ts";
export { sshKeysMade } from "./ssh-keys-made.ts";
export { isSshKeyOf } from "./ssh-keys-store.ts";
export { endKey, getKey, getKeyOf, getOrg, listEndingOrgs, listEveryOrg, listOrgs } from "./store.ts";
export { apiKeys, type KeyRow, type OrgRow } from "./table.ts";
export { cursorAfterEntry } from "./usage/credit-list.ts";
export { Credits, grantCredits } from "./usage/credits.ts";
export { getCredits, usedCredits } from "./usage/credits-store.ts";
export { DriveLevels } from "./usage/drive-levels.ts";
export { isEntryOf } from "./usage/ledger.ts";
export { type Consumer, Meter, USAGE_WRITE_SECONDS } from "./usage/meter.ts";
export { type Prices, pricesOf } from "./usage/prices.ts";
export { roomCosts } from "./usage/room-cost.ts";

export interface Orgs {
  operations: Bound[];
  /** Throws missing_credentials, invalid_api_key or api_key_expired. */
  authenticate: Authenticate;
  /** The caller of a grant, of which a token was presented. Throws invalid_api_key or api_key_expired. */
  callerOfGrant(keyId: KeyId): Caller;
  /** Row of a grant's key with its last use. */
  withUse(row: KeyRow): KeyRow;
  planOf(orgId: OrgId): string;
  nameOf(orgId: OrgId): string;
  /** Whether a key is still valid. */
  isCurrent(keyId: KeyId): boolean;
  /** Calls `cut` when the key is no longer valid; the returned function unsubscribes. */
  holdKey(keyId: KeyId, cut: () => void): () => void;
  /** Everything that depends on keys, and on things that keys have made. */
  holds: RevocationWatch;
  ssh: {
    /** Callers of a public key: one for each organization that has it, the oldest first. */
    callersOf(key: Buffer): Caller[];
    isCurrent(sshKeyId: string): boolean;
  };
  /** The caller's own organization by its id or `self`; all others are hidden from it. Throws org_not_found. */
  find(caller: Caller, orgId: string): OrgId;
  /** Writes the noted uses that are not written yet. */
  stop(): Promise<void>;
}

export function makeOrgs({
  database,
  changes,
  isShared,
  log,
  reads,
  meter,
  standing,
  credits,
  roomName,
}: OrgDeps): Orgs {
  const { queries } = database;
  const lastUsed = new LastUsed(changes, log, { isShared });
  const stopDropping = startDropping(queries, changes, log);
  const holds = new RevocationWatch();
  const isCurrent = makeIsCurrent(queries);
  const find: Orgs["find"] = (caller, orgId) => {
    if (orgId !== "self" && orgId !== caller.org_id) throw new ServiceError("org_not_found");
    const bound = boundTo(caller);
    if (bound !== null) {
      throw new ServiceError("insufficient_scope", {
        detail: `The key is bound to ${bound} and has no access to the whole organization.`,
      });
    }
    return caller.org_id;
  };
  return {
    operations: [
      makeMe(),
      makeOrgCreate({ changes }),
      ...makeKeyVerbs({ database, changes, withUse: (row) => lastUsed.withUse(row), onEnded: () => holds.look() }),
      makeUsage({
        reads,
        meter,
        standing,
        credits,
        findOrg: find,
        nameOf: (grouping, id) => {
          if (grouping === "room") return roomName(id);
          return grouping === "key" ? keyName(queries, id) : id;
        },
      }),
      makeCreditList({ database, findOrg: find, credits }),
      ...makeSshKeys({ database, changes, findOrg: find, onRemoved: () => holds.look() }),
    ],
    authenticate: makeAuthenticate(queries, (key) => lastUsed.note(key)),
    callerOfGrant: makeCallerOfGrant(queries, (key) => lastUsed.note(key)),
    withUse: (row) => lastUsed.withUse(row),
    planOf: (orgId) => knownOrg(queries, orgId)?.plan ?? "",
    nameOf: (orgId) => knownOrg(queries, orgId)?.name ?? "",
    isCurrent,
    holdKey: (keyId, cut) => holds.hold(keyId, () => isCurrent(keyId), cut),
    holds,
    ssh: {
      callersOf: (key) => callersOf(queries, key),
      isCurrent: (id) => isCurrentSshKey(queries, id),
    },
    find,
    stop: () => {
      stopDropping();
      return lastUsed.settle();
    },
  };
}
