/** Owns checking every chain of a service, with what was written down of them: the operator's proof, with or without a daemon. */
import type { AnchorStore } from "../../core/anchor-store.ts";
import type { Queries } from "../../db/client.ts";
import { chainKey, orgOfChain } from "./chain-key.ts";
import { readHeads } from "./heads.ts";
import { auditChains } from "./store.ts";
import { type Looked, verifyAnchored } from "./verify.ts";

export type OrgVerdict = Looked & { org_id: string | null };

export interface Verification {
  verdicts: OrgVerdict[];
  heads: { files: readonly string[]; unreadable: string[] };
}

/** Also of chains that only the files or the anchors know. Throws when a file cannot be read. */
export async function verifyAll(
  queries: Queries,
  files: readonly string[],
  anchors: AnchorStore | null = null,
): Promise<Verification> {
  const { witnessed, unreadable } = readHeads(files);
  const verdicts: OrgVerdict[] = [];
  // Where they cannot be read, each verdict says so.
  const anchored = (await anchors?.last().catch(() => [])) ?? [];
  const anchoredKeys = anchored.map(({ org_id }) => chainKey(org_id));
  for (const org_key of new Set([...auditChains(queries), ...witnessed.keys(), ...anchoredKeys])) {
    const verdict = await verifyAnchored(queries, org_key, anchors, witnessed.get(org_key));
    verdicts.push({ org_id: orgOfChain(org_key), ...verdict });
  }
  return { verdicts, heads: { files, unreadable } };
}
