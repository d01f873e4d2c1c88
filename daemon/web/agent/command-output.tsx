/** The output of one command: followed while it runs; after its end, the reason why no more output arrives. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import type { executionGet } from "../../../shared/api/executions.ts";
import { Lines } from "../components/lines.tsx";
import { State, Trouble } from "../components/parts.tsx";
import { countText, sizeText, visible } from "../components/text.tsx";
import { get, part, pathOf } from "../data/api.ts";
import { bytesOf } from "../data/bytes.ts";
import { type Following, follow, type Over, type StreamLine } from "../data/follow.ts";
import { MAX_LINES, Output, type Stream } from "./output.ts";

const WORDS: Record<Following, readonly [look: "busy" | "live" | "wait" | "quiet", word: string]> = {
  connecting: ["busy", "connecting"],
  live: ["live", "following"],
  reconnecting: ["wait", "reconnecting"],
  hidden: ["quiet", "paused while hidden"],
  over: ["quiet", "no longer followed"],
};

const GONE: readonly string[] = ["sandbox_not_found", "room_not_found", "room_destroying"];

/** `path`: API path of the execution. */
export function CommandOutput({ path, execId }: { path: string; execId: string }) {
  const output = useRef(new Output());
  const version = useSignal(0);
  const state = useSignal<Following>("connecting");
  const end = useSignal<StreamLine | null>(null);
  const over = useSignal<Over | null>(null);
  useEffect(() => {
    const left = new AbortController();
    output.current = new Output();
    end.value = null;
    over.value = null;
    const seen = perFrame(() => {
      version.value++;
    });
    let after: number | null = null;
    void follow(
      {
        path: () => pathOf(`${path}/stream`, { after }),
        take(event) {
          if (typeof event.seq === "number") after = event.seq;
          if (event.type === "exit") {
            output.current.end();
            end.value = event;
          } else if (event.type !== "started") output.current.push(event.type as Stream, bytesOf(event.data_b64));
          seen();
          return event.type === "exit";
        },
        // The first output of a command may be dropped: reading starts at the oldest retained piece.
        async heal(code) {
          if (code !== "history_gone") return false;
          const { oldest_seq } = await get<typeof executionGet>(path, {}, left.signal);
          const isFurther = oldest_seq - 1 > (after ?? -1);
          after = oldest_seq - 1;
          output.current.isCut = true;
          return isFurther;
        },
        became(now) {
          state.value = now;
        },
      },
      left.signal,
    ).then((reason) => {
      over.value = reason;
    });
    return () => left.abort();
  }, [path]);
  const { current } = output;
  const { value: shownVersion } = version;
  const { value: why } = over;
  const [look, word] = why?.why === "end" ? (["ok", "complete"] as const) : WORDS[state.value];
  return (
    <section aria-label={`Output of ${visible(execId)}`}>
      <p class="output-head">
        <State look={look}>{word}</State>
        <span class="muted">
          {countText(current.length)} lines · <span class="error-sign">!</span> is standard error
          {current.left.lines > 0
            ? ` · ${countText(current.left.lines)} older lines (${sizeText(current.left.bytes)}) are left out: this page keeps the newest ${countText(MAX_LINES)}, or 5 MB`
            : ""}
          {current.isCut ? " · the sandbox no longer keeps the earliest output" : ""}
        </span>
      </p>
      {why?.why !== "refused" ? null : GONE.includes(why.problem.code) ? (
        <p class="warning above">The sandbox has ended, and the command with it. Earlier output stays on the page.</p>
      ) : (
        <Trouble problem={why.problem} />
      )}
      {why?.why === "error" ? (
        <p class="warning above">No more output: {visible(why.detail)} Earlier output stays on the page.</p>
      ) : null}
      {current.length > 0 ? (
        <Lines
          count={current.length}
          came={current.left.lines + current.length}
          version={shownVersion}
          label={`Output of ${visible(execId)}`}
          follows
        >
          {(index) => {
            const line = current.at(index);
            return line ? (
              <div key={line.n} class={line.stream === "stderr" ? "line err" : "line"}>
                {visible(line.text)}
              </div>
            ) : null;
          }}
        </Lines>
      ) : state.value === "over" ? (
        why?.why === "end" ? (
          <p class="muted">It printed nothing.</p>
        ) : null
      ) : state.value === "live" ? (
        <p class="muted">It has printed nothing yet.</p>
      ) : null}
      {end.value ? <p class="muted">{endWords(end.value)}</p> : null}
    </section>
  );
}

function endWords({ exit_code, signal, timed_out, oom }: StreamLine): string {
  if (timed_out === true) return "It was ended because its time was over (timeout_ms).";
  const memory = oom === true ? " The sandbox ran out of memory." : "";
  if (typeof signal === "string") return `It was ended by ${visible(signal)}.${memory}`;
  return `It ended with exit code ${exit_code}.${memory}`;
}

/** Updates between two frames are drawn together. */
function perFrame(show: () => void): () => void {
  let isScheduled = false;
  return () => {
    if (isScheduled) return;
    isScheduled = true;
    requestAnimationFrame(() => {
      isScheduled = false;
      show();
    });
  };
}

export const executionPath = (sandbox: string, execId: string) => `${sandbox}/executions/${part(execId)}`;
