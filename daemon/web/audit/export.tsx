/** Exports the filtered audit records: as a file, or as a line for a shell. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { Problem } from "../../../shared/api/errors.ts";
import { Line, Trouble } from "../components/parts.tsx";
import { sizeText } from "../components/text.tsx";
import { ask, pathOf, Refused } from "../data/api.ts";
import { collect, MAX_BYTES } from "./collect.ts";
import { apiQuery, commandWords, type Filters } from "./filters.ts";

const LINES = "application/x-ndjson";

export function Export({ filters }: { filters: Filters }) {
  const status = useSignal("");
  const problem = useSignal<Problem | null>(null);
  const run = useRef<AbortController | null>(null);
  const isRunning = useSignal(false);
  useEffect(() => () => run.current?.abort(), []);
  const take = async () => {
    const over = new AbortController();
    run.current = over;
    isRunning.value = true;
    problem.value = null;
    status.value = "asking";
    try {
      const path = pathOf("/v1/orgs/self/audit", { ...apiQuery(filters), order: "asc" });
      const { body } = await ask(path, { Accept: LINES }, over.signal);
      const got = await collect(body, MAX_BYTES, (bytes) => {
        status.value = sizeText(bytes);
      });
      if (over.signal.aborted) return;
      status.value =
        got.is === "whole"
          ? `${sizeText(got.bytes)}, done`
          : got.is === "broken"
            ? "The download was interrupted, and nothing was saved: retry."
            : `More than ${sizeText(MAX_BYTES)}: add filters, or use the line for a shell.`;
      if (got.is === "whole") keep(new Blob(got.parts, { type: LINES }));
    } catch (error) {
      if (over.signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      status.value = "";
      problem.value = error.problem;
    } finally {
      isRunning.value = false;
    }
  };
  return (
    <div class="export">
      <p>
        <button type="button" class="button" disabled={isRunning.value} onClick={take}>
          Download as JSONL
        </button>{" "}
        <span class="muted" role="status">
          {status.value}
        </span>
      </p>
      {problem.value ? <Trouble problem={problem.value} again={take} /> : null}
      <details>
        <summary>The same in a shell</summary>
        <Line words={[...commandWords(["audit"], filters), "--json"]} />
        <Line words={commandWords(["audit", "export"], filters)} into="audit.jsonl" />
      </details>
    </div>
  );
}

/** Offers the browser a file to save. */
function keep(blob: Blob): void {
  const link = document.createElement("a");
  link.href = URL.createObjectURL(blob);
  link.download = `audit-${new Date().toISOString().slice(0, 19).replaceAll(":", "")}.jsonl`;
  link.click();
  // By then the browser has started the download.
  requestAnimationFrame(() => URL.revokeObjectURL(link.href));
}
