/** Owns what is said of the chain of records: it is read from its beginning when somebody asks, and not before. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { orgAuditVerify } from "../../../shared/api/audit.ts";
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { Problem } from "../../../shared/api/errors.ts";
import { get, Refused } from "../data/api.ts";
import { Line, State, Trouble } from "../parts/parts.tsx";
import { Clock, countText } from "../parts/text.tsx";

type Verdict = OutputOf<typeof orgAuditVerify> & { at: string };

export function Verify() {
  const verdict = useSignal<Verdict | null>(null);
  const problem = useSignal<Problem | null>(null);
  const isAsking = useSignal(false);
  const over = useRef(new AbortController());
  useEffect(() => () => over.current.abort(), []);
  const ask = async () => {
    isAsking.value = true;
    try {
      const found = await get<typeof orgAuditVerify>("/v1/orgs/self/audit/verify", {}, over.current.signal);
      verdict.value = { ...found, at: new Date().toISOString() };
      problem.value = null;
    } catch (error) {
      if (over.current.signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      problem.value = error.problem;
    } finally {
      isAsking.value = false;
    }
  };
  const { value } = verdict;
  return (
    <div class="verify">
      <p role="status">
        <button type="button" class="button" disabled={isAsking.value} onClick={ask}>
          {isAsking.value ? "Verifying" : "Verify"}
        </button>{" "}
        {value === null ? (
          <span class="muted">The records form a chain of hashes, in which every change shows.</span>
        ) : value.ok ? (
          <State look="ok">
            {value.to_seq === 0 ? "no records yet" : `chain verified up to record ${countText(value.to_seq)}`}
          </State>
        ) : (
          <State look="bad">chain broken at record {countText(value.broken_at ?? 0)}</State>
        )}{" "}
        {value ? (
          <span class="muted">
            at <Clock at={value.at} />
            {value.ok && value.from_seq > 1
              ? `; records before ${countText(value.from_seq)} are no longer kept, as the service was told`
              : ""}
          </span>
        ) : null}
      </p>
      {problem.value ? <Trouble problem={problem.value} again={ask} /> : null}
      {value && !value.ok ? (
        <div class="trouble" role="alert">
          <p>
            Record {countText(value.broken_at ?? 0)} is not what was written, is gone, or does not follow the one before
            it. What comes before it is whole. Keep a copy of the service's data as it is, and compare it on the host
            with heads of the chain that were kept elsewhere:
          </p>
          <Line words={["audit", "verify", "--host", "--heads", "audit-heads.ndjson"]} />
        </div>
      ) : null}
    </div>
  );
}
