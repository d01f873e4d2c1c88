/** Owns checking every chain of a service, with what was written down of them: the operator's proof, with or without a daemon. */
import type { Queries } from "../../db/client.ts";
import type { Verdict } from "./chain.ts";
import { orgOfChain } from "./chain-key.ts";
import { readHeads } from "./heads.ts";
import { auditChains } from "./store.ts";
import { verifyAudit } from "./verify.ts";

export type OrgVerdict = Verdict & { org_id: string | null };

export interface Verification {
  verdicts: OrgVerdict[];
  heads: { files: readonly string[]; unreadable: string[] };
}

/** Also of chains that only the files know. Throws when a file cannot be read. */
export async function verifyAll(queries: Queries, files: readonly string[]): Promise<Verification> {
  const { witnessed, unreadable } = readHeads(files);
  const verdicts: OrgVerdict[] = [];
  for (const org_key of new Set([...auditChains(queries), ...witnessed.keys()])) {
    const verdict = await verifyAudit(queries, org_key, witnessed.get(org_key));
    verdicts.push({ org_id: orgOfChain(org_key), ...verdict });
  }
  return { verdicts, heads: { files, unreadable } };
}
