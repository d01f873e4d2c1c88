/** Anchors of audit chains: the interface between the chains and the store of the anchors. */

/** The head of a chain; org_id is null for the chain of records that belong to no organization. */
export interface Anchor {
  org_id: string | null;
  seq: number;
  hash: string;
}

/** Insert-only. All calls reject if the store is unavailable. */
export interface AnchorStore {
  /** Rejects also if this host is no longer a member. */
  add(anchors: readonly Anchor[], deadlineMs: number): Promise<void>;
  /** The last anchor of each of this host's chains. */
  last(): Promise<Anchor[]>;
  /** Anchors of one chain after a record, in order, up to `limit`. */
  after(orgId: string | null, seq: number, limit: number): Promise<Anchor[]>;
}
