/**
 * Interface for changes to organizations, plans, API keys and public SSH keys. These hold for the service as a whole, on any number of
 * hosts: `changes.ts` makes them on the database whose commits apply to all hosts.
 *
 *     verb ──▶ OrgChanges: checks the rules, changes the rows ──▶ `within` in the same transaction
 *
 * Reads are not part of it: they use this host's tables, without waiting.
 */
import type { Scope } from "../../../shared/api/contract.ts";
import type { KeyId, OrgId, UserId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import type { Rotation } from "./keys.ts";
import type { EndedMade } from "./made.ts";
import type { KeyRow, NewOrgRow, OrgRow, SshKeyRow } from "./table.ts";

/** Runs in the transaction of a change: writes that belong to it, such as its audit record. */
export type Within<Change, T> = (queries: Queries, change: Change) => T;

export interface NewOrgRows {
  org: NewOrgRow;
  /** Keys of the organization, or of none. */
  keys: readonly KeyRow[];
  /** Only if no organization exists yet. */
  isFirst?: boolean;
}

export type PlanChange = Pick<OrgRow, "plan" | "plan_by">;

export interface PlanSet {
  before: OrgRow;
  change: PlanChange | null;
}

/** Each resolves with the result of `within` once the change is on disk. Other rejections: disk_full. */
export interface OrgChanges {
  /** Throws already_exists. */
  addOrg<T>(made: NewOrgRows, within: Within<NewOrgRow, T>): Promise<T>;
  /** `decide` returns the new plan, or null to keep the plan. Throws org_not_found. */
  setPlan<T>(orgId: OrgId, decide: (org: OrgRow) => PlanChange | null, within: Within<PlanSet, T>): Promise<T>;
  /** Starts its end: from now on its keys are invalid, and nothing is added to it. Throws org_not_found; rejects as `require` throws. */
  endOrg<T>(orgId: OrgId, require: (queries: Queries) => void, within: Within<EndingOrg, T>): Promise<T>;
  /** Deletes all keys of an ending organization, in changes of bounded size. */
  dropOrgKeys(orgId: OrgId): Promise<void>;
  /** Completes its end: it can no longer be found, and its name is free. `dropOrgKeys` comes before. */
  finishOrg<T>(orgId: OrgId, within: Within<OrgRow, T>): Promise<T>;
  /** Throws org_not_found, quota_exceeded, and invalid_api_key if the key that makes it has ended. */
  addKey<T>(key: KeyRow, within: Within<KeyRow, T>): Promise<T>;
  /** `rotate` returns the replacement of the key's current row, or throws. Throws key_not_found, and as addKey does. */
  rotateKey<T>(
    keyId: KeyId,
    rotate: (old: KeyRow) => Rotation,
    within: Within<Rotation & { replaced: KeyRow }, T>,
  ): Promise<T>;
  /** Ends the things made by its line, if no key of the line remains valid. Throws key_not_found, also for a revoked key. */
  revokeKey<T>(keyId: KeyId, within: Within<Revocation, T>): Promise<T>;
  /**
   * Ends the person's keys with more scopes than the person may still give, the keys made by those, and all resources made by any of them
   * or by the person. A key that another person has rotated since belongs to that person. Rejects with the errors of `require`.
   */
  endAccess<T>(orgId: OrgId, userId: UserId, ending: Ending, within: Within<EndedAccess, T>): Promise<T>;
  /** The same in every organization that `require` returns, for a person without any access left. Rejects with the errors of `require`. */
  endAccessEverywhere<T>(
    userId: UserId,
    leaving: { require(queries: Queries): OrgId[]; change(queries: Queries, orgId: OrgId): void },
    within: Within<readonly EndedIn[], T>,
  ): Promise<T>;
  /** Signs out a person's applications in every organization, and ends things that these have made. */
  endGrantsOf<T>(userId: UserId, within: Within<readonly KeyRow[], T>): Promise<T>;
  /** Ends things with makers that have lost access, if no call has: a key expires without a call. */
  endMadeIn(orgId: OrgId): Promise<void>;
  /** Throws org_not_found, already_exists, quota_exceeded, and invalid_api_key under the condition of addKey. */
  addSshKey<T>(key: SshKeyRow, within: Within<SshKeyRow, T>): Promise<T>;
  /** Throws key_not_found. */
  removeSshKey<T>(orgId: OrgId, sshKeyId: string, within: Within<SshKeyRow, T>): Promise<T>;
  /** Removes the given keys, except those that ended later or are still needed. */
  dropKeys(ids: readonly KeyId[], before: string): Promise<void>;
  /** Writes the last use of keys; a crash may lose it. */
  noteUses(uses: readonly KeyUse[]): Promise<void>;
}

export interface EndingOrg {
  org: OrgRow;
  keys_revoked: number;
}

export interface Ending {
  /** Throws if a precondition does not hold in the transaction. */
  require(queries: Queries): void;
  /** Scopes that the person's keys may keep. */
  gives: readonly Scope[];
  /** Removes the membership, or changes its role. */
  change(queries: Queries): void;
}

export interface EndedAccess {
  keys: readonly KeyRow[];
  made: EndedMade;
}

export interface EndedIn extends EndedAccess {
  org_id: OrgId;
}

export interface Revocation {
  key: KeyRow;
  made: EndedMade;
}

export interface KeyUse {
  key_id: KeyId;
  last_used_at: string;
  /** Not written if the stored value is later. */
  unless_after: string;
}
