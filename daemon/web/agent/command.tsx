/** One opened command: its command line, its result, and its output if it is still retained. */
import { useEffect, useRef } from "preact/hooks";
import { Copy, Empty, Line } from "../components/parts.tsx";
import { Clock, Foreign, sizeText, visible } from "../components/text.tsx";
import { setQuery } from "../shell/router.ts";
import { CommandOutput, executionPath } from "./command-output.tsx";
import { RunEnd, Took } from "./run-table.tsx";
import type { Run } from "./runs.ts";
import { isThere, sandboxPath, type TabProps } from "./tab.ts";

/** Longer commands are programs, to be copied rather than read here. */
const MOST = 1500;

export function Opened({ execId, run, room, agentId, sandbox }: TabProps & { execId: string; run: Run | undefined }) {
  const top = useRef<HTMLDivElement>(null);
  useEffect(() => top.current?.scrollIntoView({ block: "nearest" }), []);
  const close = (
    <button type="button" class="link" onClick={() => setQuery({ exec: null })}>
      Close
    </button>
  );
  // Output that was displayed stays displayed when the sandbox drops it.
  const kept = useRef<string | null>(null);
  if (run?.isKept && isThere(sandbox)) kept.current = executionPath(sandboxPath(sandbox), execId);
  if (!run) {
    return (
      <Empty title="This command is not on the page.">
        <p>
          <Foreign text={execId} mono /> is older than the listed commands, from another sandbox, or does not exist.{" "}
          <a href={`/audit?room=${encodeURIComponent(room.room_id)}&agent=${encodeURIComponent(agentId)}&event=exec.`}>
            Look in the audit
          </a>
          . {close}
        </p>
      </Empty>
    );
  }
  return (
    <div class="opened-command" ref={top}>
      <header class="page">
        <RunEnd run={run} />
        <span class="muted">
          <Foreign text={run.id} mono /> · began <Clock at={run.startedAt} /> · <Took run={run} />
          {run.outBytes === null ? "" : ` · ${sizeText(run.outBytes)} out, ${sizeText(run.errBytes ?? 0)} err`}
        </span>
        <span class="push">{close}</span>
      </header>
      <div class="ask">
        <pre>{visible(run.command.length > MOST ? `${run.command.slice(0, MOST)}…` : run.command)}</pre>
        <Copy text={run.command} />
      </div>
      {kept.current !== null ? (
        <CommandOutput path={kept.current} execId={run.id} />
      ) : run.state === "refused" ? (
        <Empty title="It was refused, and never ran." />
      ) : (
        <Empty title="Its output is no longer kept.">
          <p>
            A sandbox keeps output for 10 minutes after a command's end. A command that is to leave more puts it on the
            drive:
          </p>
          <Line words={["exec", room.room_id, agentId, "--output-to", "/out", "--", "…"]} />
        </Empty>
      )}
    </div>
  );
}
