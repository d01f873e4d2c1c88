/** One terminal: its screen, the typing client, and why it ended. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { State, Trouble } from "../../components/parts.tsx";
import { Foreign, Since, sizeText, visible } from "../../components/text.tsx";
import type { Following } from "../../data/follow.ts";
import type { TerminalPlace } from "./place.ts";
import type { Screen } from "./screen.ts";
import { TypeHere } from "./type-here.tsx";
import { UNSEEN, type Watched, watch } from "./watching.ts";

const WORDS: Record<Following, readonly [look: "busy" | "live" | "wait" | "quiet", word: string]> = {
  connecting: ["busy", "connecting"],
  live: ["live", "watching"],
  reconnecting: ["wait", "reconnecting"],
  hidden: ["quiet", "paused while hidden"],
  over: ["quiet", "ended"],
};

/** `reason`: of the terminal's end, from its record. */
export function TerminalView({ place, reason }: { place: TerminalPlace; reason: string | null }) {
  const box = useRef<HTMLElement | null>(null);
  const shown = useSignal<Watched>(UNSEEN);
  const screen = useSignal<Screen | null>(null);
  const isLost = useSignal(false);
  const isTyping = useSignal(false);
  const reached = useRef<() => number>(() => 0);
  useEffect(() => {
    const left = new AbortController();
    shown.value = UNSEEN;
    isLost.value = false;
    void import("./screen.ts").then(
      ({ Screen: Made }) => {
        const { current } = box;
        if (left.signal.aborted || !current) return;
        const made = new Made(current, UNSEEN);
        screen.value = made;
        reached.current = watch(place.path, made, shown, left.signal).reached;
      },
      () => {
        isLost.value = true;
      },
    );
    return () => {
      left.abort();
      screen.value?.close();
      screen.value = null;
    };
  }, [place.path]);
  const { state, typist, rows, cols, missed, exit, over } = shown.value;
  const [look, word] = WORDS[state];
  return (
    <div>
      <p class="output-head">
        <State look={look}>{word}</State>
        {isTyping.value ? (
          <State look="busy">you type</State>
        ) : typist ? (
          <State look="wait">
            in use by <Foreign text={typist.name} most={60} /> for <Since at={typist.since} />
          </State>
        ) : state === "over" ? null : (
          <State look="quiet">not in use</State>
        )}
        <span class="muted">
          {cols} × {rows}
          {missed > 0 ? ` · ${sizeText(missed)} of its output are not kept` : ""}
        </span>
      </p>
      {isLost.value ? (
        <p class="warning">The program that draws the terminal could not be loaded. Reload the page.</p>
      ) : null}
      {over?.why === "refused" ? <Trouble problem={over.problem} /> : null}
      {over?.why === "error" ? (
        <p class="warning above">No more output: {visible(over.detail)} Its last contents stay on the page.</p>
      ) : null}
      <section
        class="screen-place"
        data-keys
        aria-label="Terminal contents"
        // biome-ignore lint/a11y/noNoninteractiveTabindex: it scrolls, and is scrolled by keys
        tabIndex={0}
        ref={box}
      />
      {exit ? <p class="muted">{endWords(exit, reason)} Its last contents stay on the page.</p> : null}
      {screen.value && !exit && over === null ? (
        <TypeHere
          place={place}
          screen={screen.value}
          reached={() => reached.current()}
          typist={typist?.name ?? null}
          box={box}
          became={(is) => {
            isTyping.value = is;
          }}
        />
      ) : null}
    </div>
  );
}

function endWords({ exit_code, signal }: NonNullable<Watched["exit"]>, reason: string | null): string {
  if (reason === "detached") return "It was ended because no client was attached for too long.";
  if (reason === "closed") return "It was closed.";
  if (signal !== null) return `It was ended by ${visible(signal)}.`;
  return `Its command ended with exit code ${exit_code}.`;
}
