/** Owns what an anchor of an audit chain is, between whoever has chains and where anchors are kept. */

/** Where a chain ended; org_id is null for that of what belongs to no organization. */
export interface Anchor {
  org_id: string | null;
  seq: number;
  hash: string;
}

/** Takes anchors and gives none up. All reject where it cannot be reached. */
export interface AnchorStore {
  /** Rejects also where this host is no member any more. */
  add(anchors: readonly Anchor[], deadlineMs: number): Promise<void>;
  /** The last of each of this host's chains. */
  last(): Promise<Anchor[]>;
  /** Some of one of its chains, in order: those after a record. */
  after(orgId: string | null, seq: number, limit: number): Promise<Anchor[]>;
}
