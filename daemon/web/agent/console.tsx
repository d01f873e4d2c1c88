/** The page of a guest's console: output of its kernel and its agent, the newest part first. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import type { Problem } from "../../../shared/api/errors.ts";
import type { sandboxLogs } from "../../../shared/api/sandboxes.ts";
import { Ask } from "../components/ask.tsx";
import { Lines } from "../components/lines.tsx";
import { Choices, Empty, Line, Loading, Trouble } from "../components/parts.tsx";
import { countText, visible } from "../components/text.tsx";
import { get, Refused } from "../data/api.ts";
import { place, setQuery } from "../shell/router.ts";
import { type AskLog, type LogPart, readAfter, readBefore, readEnd } from "./console-pages.ts";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";

const SOURCES = [
  ["console", "all"],
  ["agent", "its agent's lines"],
] as const;
/** A kernel prints no longer lines; longer ones of a guest are truncated. */
const LONGEST_LINE = 4000;

export default function Console({ room, agentId, sandbox }: TabProps) {
  const source = SOURCES.find(([each]) => each === place.value.query.get("source"))?.[0] ?? "console";
  if (!isThere(sandbox)) {
    return (
      <Empty title="There is no console to read.">
        <p>A sandbox's console is kept as long as the sandbox. Its activity is in the audit.</p>
      </Empty>
    );
  }
  return (
    <>
      <Log key={`${sandbox.sandbox_id} ${source}`} path={`${sandboxPath(sandbox)}/logs`} source={source} />
      <h2>In a shell</h2>
      <Line words={["logs", room.room_id, agentId]} />
      <Ask names={["why-did-it-fail"]} given={{ room: room.room_id, agent: agentId }} />
    </>
  );
}

function Log({ path, source }: { path: string; source: (typeof SOURCES)[number][0] }) {
  const part = useSignal<LogPart | null>(null);
  const problem = useSignal<Problem | null>(null);
  const isBusy = useSignal(false);
  const search = useSignal("");
  const version = useSignal(0);
  const over = useSignal(new AbortController());
  const ask: AskLog = (after, limit) => get<typeof sandboxLogs>(path, { source, after, limit }, over.value.signal);
  const load = async (read: (now: LogPart | null) => Promise<LogPart>) => {
    if (isBusy.value) return;
    isBusy.value = true;
    try {
      const next = await read(part.value);
      if (over.value.signal.aborted) return;
      part.value = next;
      problem.value = null;
      version.value++;
    } catch (error) {
      if (over.value.signal.aborted) return;
      if (!(error instanceof Refused)) throw error;
      problem.value = error.problem;
    } finally {
      isBusy.value = false;
    }
  };
  useEffect(() => {
    void load(() => readEnd(ask));
    return () => over.value.abort();
  }, []);
  const { value: now } = part;
  const newer = () => load(async (known) => (known ? joined(known, await readAfter(ask, known)) : await readEnd(ask)));
  const older = () => load(async (known) => (known ? joined(await readBefore(ask, known), known) : await readEnd(ask)));
  const query = search.value.trim().toLowerCase();
  const found = now?.lines.filter(({ line }) => line.toLowerCase().includes(query)) ?? [];
  return (
    <>
      <search class="filters">
        <Choices
          label="Which lines"
          of={SOURCES}
          at={source}
          choose={(each) => setQuery({ source: each === "console" ? null : each })}
        />
        <input
          data-search
          type="search"
          aria-label="Search in these lines"
          placeholder="in these lines"
          value={search.value}
          onInput={({ currentTarget }) => {
            search.value = currentTarget.value;
          }}
        />
        <button type="button" class="link" onClick={newer}>
          Load newer
        </button>
      </search>
      {problem.value ? <Trouble problem={problem.value} again={newer} /> : null}
      {!now ? (
        problem.value ? null : (
          <Loading rows={6} />
        )
      ) : now.lines.length === 0 ? (
        <Empty title="Nothing was printed on the console." />
      ) : (
        <>
          <p class="output-head">
            {now.isFirst ? (
              <span class="muted">From the first line that is kept.</span>
            ) : (
              <button type="button" class="button" disabled={isBusy.value} onClick={older}>
                Show older
              </button>
            )}
            <span class="muted">
              {query ? `${countText(found.length)} of ` : ""}
              {countText(now.lines.length)} lines
            </span>
          </p>
          {found.length === 0 ? (
            <Empty title="No matching lines." />
          ) : (
            <Lines count={found.length} version={version.value} label="Console" follows>
              {(index) => {
                const line = found[index];
                return line ? (
                  <div key={line.offset} class="line">
                    {visible(line.line.slice(0, LONGEST_LINE))}
                  </div>
                ) : null;
              }}
            </Lines>
          )}
        </>
      )}
    </>
  );
}

function joined(before: LogPart, after: LogPart): LogPart {
  return {
    from: before.from,
    to: after.to,
    lines: [...before.lines, ...after.lines],
    isFirst: before.isFirst,
  };
}
