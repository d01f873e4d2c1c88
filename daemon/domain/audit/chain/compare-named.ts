/**
 * Comparison of chains with the heads that records of other hosts name, for a verification: the host of a named head looks it up in its
 * chain. So a truncated or rewritten chain contradicts other hosts' records, even without its anchors.
 */
import { timeoutSignal } from "../../../core/clock.ts";
import { inPieces } from "../../../core/loop/index.ts";
import { stepsAtOneMoment } from "../../../db/client.ts";
import type { Database } from "../../../db/transact.ts";
import { lostOf } from "../anchors/anchored.ts";
import { chainHead } from "./chain-head.ts";
import { chainKey } from "./chain-key.ts";
import type { Head } from "./hash-chain.ts";
import type { NamedHead } from "./named-heads.ts";
import { walkOf } from "./time-slices.ts";

const COMPARE_MS = 10_000;

/** The head of an organization's chain that another host may name: on disk, so that no loss of power contradicts it. */
export function headToName(database: Database, orgId: string): Promise<Head | null> {
  return database.commit((queries) => chainHead(queries, chainKey(orgId)), false);
}

export interface OtherHosts {
  /** Null: no such member. */
  joinedAt(hostId: string): string | null;
  /** Seqs of heads that the host's chain lacks or has with another hash. Rejects with host_unreachable. */
  lostHeads(hostId: string, orgId: string, heads: readonly Head[], over: AbortSignal): Promise<number[]>;
}

/** This host's answer to that request. A purged record is not missing. Rejects with the signal's reason. */
export async function lostHeads(
  { queries }: Database,
  orgId: string,
  heads: readonly Head[],
  over: AbortSignal,
): Promise<number[]> {
  const steps = lostOf(
    queries,
    heads.map((head) => ({ ...head, org_id: orgId })),
  );
  const lost = await inPieces(stepsAtOneMoment(queries, steps), walkOf(chainKey(orgId), { signal: over }));
  return lost.map(({ seq }) => seq);
}

/** A named record that its host lacks. */
export interface Contradiction {
  host: string;
  seq: number;
}

/** Has the hosts of named heads compare them. A host that has joined again has another chain than the one named. */
export async function compareNamed(
  others: OtherHosts,
  orgId: string,
  named: readonly NamedHead[],
): Promise<{ contradicts: Contradiction[]; warnings: string[] }> {
  const contradicts: Contradiction[] = [];
  const warnings: string[] = [];
  const compare = async (name: string, heads: readonly NamedHead[]) => {
    const joinedAt = others.joinedAt(name);
    const current = joinedAt === null ? [] : heads.filter(({ at }) => at >= joinedAt);
    if (current.length === 0) return;
    try {
      const asked = current.map(({ seq, hash }) => ({ seq, hash }));
      const lost = new Set(await others.lostHeads(name, orgId, asked, timeoutSignal(COMPARE_MS)));
      contradicts.push(...asked.filter(({ seq }) => lost.has(seq)).map(({ seq }) => ({ host: name, seq })));
    } catch {
      warnings.push(`The host ${name} did not compare its chain with the heads that records of moves name.`);
    }
  };
  await Promise.all([...Map.groupBy(named, ({ host }) => host)].map(([name, heads]) => compare(name, heads)));
  return { contradicts, warnings };
}
