/** The table of an agent's commands. */
import { type Look, State } from "../components/parts.tsx";
import { Table } from "../components/table.tsx";
import { Clock, Foreign, Since, sizeText, spanText } from "../components/text.tsx";
import type { Run } from "./runs.ts";

/** State or outcome of a run. */
export function RunEnd({ run }: { run: Run }) {
  const [look, word] = endOf(run);
  return <State look={look}>{word}</State>;
}

function endOf({ state, exitCode, signal, hasTimedOut, errorCode }: Run): readonly [Look, string] {
  if (state === "running") return ["busy", "running"];
  if (state === "refused") return ["bad", errorCode ?? "refused"];
  if (state === "unknown") return ["quiet", errorCode ?? "end not recorded"];
  if (hasTimedOut) return ["bad", "timed out"];
  if (signal !== null) return ["bad", signal];
  return exitCode === 0 ? ["quiet", "exit 0"] : ["bad", `exit ${exitCode ?? "?"}`];
}

export function Took({ run: { state, tookMs, startedAt } }: { run: Run }) {
  if (state === "running") return <Since at={startedAt} />;
  return <>{tookMs === null ? "–" : spanText(tookMs)}</>;
}

/** `path`: of the page that lists commands. */
export function RunTable({
  runs,
  opened = null,
  path,
}: {
  runs: readonly Run[];
  opened?: string | null;
  path: string;
}) {
  return (
    <Table
      class="runs"
      classes={{ Began: "tight", End: "tight", Took: "num tight", Output: "num tight" }}
      rows={runs.map((run) => ({
        key: run.id,
        class: run.id === opened ? "opened" : undefined,
        cells: {
          Began: <Clock at={run.startedAt} />,
          Command: (
            <a
              data-row
              href={`${path}?exec=${encodeURIComponent(run.id)}`}
              aria-current={run.id === opened ? "true" : undefined}
            >
              <Foreign text={run.command || run.id} most={160} mono />
            </a>
          ),
          End: <RunEnd run={run} />,
          Took: <Took run={run} />,
          Output: run.outBytes === null ? "–" : sizeText(run.outBytes + (run.errBytes ?? 0)),
        },
      }))}
    />
  );
}
