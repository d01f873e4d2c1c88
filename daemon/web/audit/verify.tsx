/** Texts about the chain of records: a line next to the summary, and details below. */
import { Line, State, Trouble } from "../components/parts.tsx";
import { Clock, countText } from "../components/text.tsx";
import type { Chain, Verdict } from "./verdict.ts";

/** Next to the summary: present from the start, so that the layout does not shift. */
export function ChainLine({ verdict, isAsking, problem }: Chain) {
  return (
    <p class="chain-line">
      {verdict ? (
        <>
          <Found verdict={verdict} />
          <span class="muted">
            {verdict.ok ? "at" : "found at"} <Clock at={verdict.at} />
          </span>
        </>
      ) : (
        <State look={isAsking ? "busy" : "quiet"}>
          {isAsking ? "chain being verified" : problem ? "chain not verified: see below" : "chain not verified yet"}
        </State>
      )}
    </p>
  );
}

function Found({ verdict: { ok, from_seq, to_seq, broken_at } }: { verdict: Verdict }) {
  if (!ok) return <State look="bad">chain broken at record {countText(broken_at ?? 0)}</State>;
  const count = to_seq === 0 ? 0 : to_seq - from_seq + 1;
  return (
    <State look="ok">
      chain verified, {countText(count)} {count === 1 ? "record" : "records"}
    </State>
  );
}

export function Verify({ chain: { verdict, problem, isAsking, ask } }: { chain: Chain }) {
  return (
    <div class="verify">
      <p role="status">
        <button type="button" class="button" disabled={isAsking} onClick={ask}>
          {isAsking ? "Verifying" : verdict ? "Verify again" : "Verify"}
        </button>{" "}
        <span class="muted">
          {verdict === null ? (
            `The records form a hash chain that reveals every change.${isAsking || problem ? "" : " This chain is long: it is verified on request."}`
          ) : verdict.ok && verdict.to_seq > 0 ? (
            <>
              Records {countText(verdict.from_seq)} to {countText(verdict.to_seq)} were whole at{" "}
              <Clock at={verdict.at} />.
              {verdict.from_seq > 1 ? " Earlier records are past the configured retention." : ""}
            </>
          ) : verdict.ok ? (
            "There are no records yet."
          ) : null}
        </span>
      </p>
      {problem ? <Trouble problem={problem} again={ask} /> : null}
      {verdict && !verdict.ok ? (
        <div class="trouble" role="alert">
          <p>
            Record {countText(verdict.broken_at ?? 0)} was changed or removed, or does not follow the previous record.
            All earlier records are intact. Keep a copy of the service's data as it is, and compare it on the host with
            chain heads that were stored elsewhere:
          </p>
          <Line words={["audit", "verify", "--host", "--heads", "audit-heads.ndjson"]} />
        </div>
      ) : null}
    </div>
  );
}
