/**
 * State of the audit chain's verification: whether it is intact, up to which record, and when it was checked. A short chain is verified
 * when the page is opened; for a long one the last verdict in this browser is shown, until the user requests a new one.
 */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { orgAuditList, orgAuditVerify } from "../../../shared/api/audit.ts";
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { get, Refused } from "../data/api.ts";
import { boot } from "../shell/boot.ts";

export type Verdict = OutputOf<typeof orgAuditVerify> & { at: string };

export interface Chain {
  verdict: Verdict | null;
  problem: Problem | null;
  isAsking: boolean;
  ask(): void;
}

/** The service reads this many records in about a second, with yields to other work. */
const MAX_BY_ITSELF = 20_000;
const AUDIT = "/v1/orgs/self/audit";

export function useChain(): Chain {
  const verdict = useSignal<Verdict | null>(null);
  const problem = useSignal<Problem | null>(null);
  const isAsking = useSignal(false);
  const over = useRef(new AbortController());
  const { signal } = over.current;
  const guarded = async (work: () => Promise<void>) => {
    isAsking.value = true;
    try {
      await work();
      problem.value = null;
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      problem.value = error.problem;
    } finally {
      isAsking.value = false;
    }
  };
  const verify = async () => {
    const found = await get<typeof orgAuditVerify>(`${AUDIT}/verify`, {}, signal);
    verdict.value = { ...found, at: new Date().toISOString() };
    localStorage.setItem(KEPT, JSON.stringify(verdict.value));
  };
  useEffect(() => {
    verdict.value = kept();
    void guarded(async () => {
      const { items } = await get<typeof orgAuditList>(AUDIT, { limit: 1 }, signal);
      if ((items[0]?.seq ?? 0) <= MAX_BY_ITSELF) await verify();
    });
    return () => over.current.abort();
  }, []);
  return {
    verdict: verdict.value,
    problem: problem.value,
    isAsking: isAsking.value,
    ask: () => void guarded(verify),
  };
}

/** Per organization: a user can be in several. */
const KEPT = `chain ${boot.org.org_id}`;

function kept(): Verdict | null {
  try {
    return JSON.parse(localStorage.getItem(KEPT) ?? "null") as Verdict | null;
  } catch {
    return null;
  }
}
