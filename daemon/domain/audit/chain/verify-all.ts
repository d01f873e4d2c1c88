/** Verification of every chain of a service against the heads stored elsewhere: the operator's proof, with or without a daemon. */
import type { AnchorStore } from "../../../core/anchor-store.ts";
import type { Queries } from "../../../db/client.ts";
import { readHeads } from "../anchors/heads.ts";
import { auditChains } from "../store.ts";
import { chainKey, orgOfChain } from "./chain-key.ts";
import { walkOf } from "./time-slices.ts";
import { type Looked, verifyAnchored } from "./verify.ts";

export type OrgVerdict = Looked & { org_id: string | null };

export interface Verification {
  verdicts: OrgVerdict[];
  heads: { files: readonly string[]; unreadable: string[] };
}

/** Includes chains that only the files or the anchors name. Throws if a file cannot be read. */
export async function verifyAll(
  queries: Queries,
  files: readonly string[],
  anchors: AnchorStore | null = null,
): Promise<Verification> {
  const { witnessed, unreadable } = await readHeads(files, walkOf(chainKey(null)));
  const verdicts: OrgVerdict[] = [];
  // If the anchors cannot be read, each verdict has a warning.
  const anchored = (await anchors?.last().catch(() => [])) ?? [];
  const anchoredKeys = anchored.map(({ org_id }) => chainKey(org_id));
  for (const org_key of new Set([...auditChains(queries), ...witnessed.keys(), ...anchoredKeys])) {
    const verdict = await verifyAnchored(queries, org_key, anchors, witnessed.get(org_key));
    verdicts.push({ org_id: orgOfChain(org_key), ...verdict });
  }
  return { verdicts, heads: { files, unreadable } };
}
