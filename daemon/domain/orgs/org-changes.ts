/**
 * Owns what changes of organizations there are, of their plans, API keys and public SSH keys. All of that is true for the service as a
 * whole, on however many hosts: `changes.ts` makes them on the database whose commits are.
 *
 *   verb ──▶ OrgChanges: checks the rules, changes the rows ──▶ `within` in the same transaction
 *
 * Reading is no part of it: rows are read where they are, in this host's tables, and nobody waits for that.
 */
import type { Scope } from "../../../shared/api/contract.ts";
import type { KeyId, OrgId, UserId } from "../../../shared/ids.ts";
import type { Queries } from "../../db/client.ts";
import type { Rotation } from "./keys.ts";
import type { EndedMade } from "./made.ts";
import type { KeyRow, NewOrgRow, OrgRow, SshKeyRow } from "./table.ts";

/** Runs in the transaction of a change: what is to be kept with it, such as its record. */
export type Within<Change, T> = (queries: Queries, change: Change) => T;

export interface NewOrgRows {
  org: NewOrgRow;
  /** Of the organization, or of none. */
  keys: readonly KeyRow[];
  /** Only where there is no organization yet. */
  isFirst?: boolean;
}

export type PlanChange = Pick<OrgRow, "plan" | "plan_by">;

export interface PlanSet {
  before: OrgRow;
  change: PlanChange | null;
}

/** Each resolves with what `within` returns once the change is on disk. Other rejections: disk_full. */
export interface OrgChanges {
  /** Throws already_exists. */
  addOrg<T>(made: NewOrgRows, within: Within<NewOrgRow, T>): Promise<T>;
  /** `decide` says what the plan becomes, null: it stays. Throws org_not_found. */
  setPlan<T>(orgId: OrgId, decide: (org: OrgRow) => PlanChange | null, within: Within<PlanSet, T>): Promise<T>;
  /** Its end begins: from here on its keys are no good, and nothing is added to it. Throws org_not_found; rejects as `require` throws. */
  endOrg<T>(orgId: OrgId, require: (queries: Queries) => void, within: Within<EndingOrg, T>): Promise<T>;
  /** Deletes all keys of an ending organization, in changes of bounded size. */
  deleteKeys(orgId: OrgId): Promise<void>;
  /** Its end has come: nobody finds it any more, and its name is free. `deleteKeys` comes before. */
  finishOrg<T>(orgId: OrgId, within: Within<OrgRow, T>): Promise<T>;
  /** Throws org_not_found, quota_exceeded, and invalid_api_key where the key that makes it has ended. */
  addKey<T>(key: KeyRow, within: Within<KeyRow, T>): Promise<T>;
  /** `rotate` says of the key as it is what takes its place, or throws. Throws key_not_found, and as addKey does. */
  rotateKey<T>(
    keyId: KeyId,
    rotate: (old: KeyRow) => Rotation,
    within: Within<Rotation & { replaced: KeyRow }, T>,
  ): Promise<T>;
  /** Ends what its line has made, if no key of the line remains valid. Throws key_not_found, also for a key that is revoked. */
  revokeKey<T>(keyId: KeyId, within: Within<Revocation, T>): Promise<T>;
  /**
   * Ends keys of a person that have more scopes than the person may still give, keys made by those, and all that any of them or the person
   * has made. A key that another person has rotated since is that person's. Rejects as `require` throws.
   */
  endAccess<T>(orgId: OrgId, userId: UserId, ending: Ending, within: Within<Ended, T>): Promise<T>;
  /** The same in every organization that `require` returns, for a person without any access left. Rejects as `require` throws. */
  endAccessEverywhere<T>(
    userId: UserId,
    leaving: { require(queries: Queries): OrgId[]; change(queries: Queries, orgId: OrgId): void },
    within: Within<readonly EndedIn[], T>,
  ): Promise<T>;
  /** Signs out a person's applications in every organization, and ends what these have made. */
  endGrantsOf<T>(userId: UserId, within: Within<readonly KeyRow[], T>): Promise<T>;
  /** Ends what makers of an organization have made whose access is over, where no call has: a key's time ends without one. */
  endMadeIn(orgId: OrgId): Promise<void>;
  /** Throws org_not_found, already_exists, quota_exceeded, and invalid_api_key as addKey does. */
  addSshKey<T>(key: SshKeyRow, within: Within<SshKeyRow, T>): Promise<T>;
  /** Throws key_not_found. */
  removeSshKey<T>(orgId: OrgId, sshKeyId: string, within: Within<SshKeyRow, T>): Promise<T>;
  /** Removes the given keys, but for any that ended later or is still needed. */
  dropKeys(ids: readonly KeyId[], before: string): Promise<void>;
  /** Writes when keys were last used; a crash may lose it. */
  noteUses(uses: readonly KeyUse[]): Promise<void>;
}

export interface EndingOrg {
  org: OrgRow;
  keys_revoked: number;
}

export interface Ending {
  /** What must be so in the transaction. */
  require(queries: Queries): void;
  /** What keys of the person may still have. */
  gives: readonly Scope[];
  /** Removes the membership, or changes its role. */
  change(queries: Queries): void;
}

export interface Ended {
  keys: readonly KeyRow[];
  made: EndedMade;
}

export interface EndedIn extends Ended {
  org_id: OrgId;
}

export interface Revocation {
  key: KeyRow;
  made: EndedMade;
}

export interface KeyUse {
  key_id: KeyId;
  last_used_at: string;
  /** It is not written if the one that is written is later. */
  unless_after: string;
}
