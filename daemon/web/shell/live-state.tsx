/** Display of the stream's state: whether the page is current, and otherwise its lag. */
import { useSignal } from "@preact/signals";
import { useEffect } from "preact/hooks";
import { type Look, State } from "../components/parts.tsx";
import { spanText } from "../components/text.tsx";
import { behindMs } from "../data/freshness.ts";
import { heardSoFar, type LiveState, liveState, refusal } from "../data/live.ts";

const WORDS = {
  off: null,
  connecting: ["busy", "connecting"],
  live: ["live", "live"],
  reconnecting: ["wait", "reconnecting"],
  hidden: ["quiet", "paused while hidden"],
  over: ["quiet", "ended"],
  "signed-out": ["bad", "signed out"],
} as const;

/** For a room that is currently unavailable. */
const AWAY: Record<string, readonly [Look, string]> = {
  room_moving: ["busy", "moving"],
  host_unreachable: ["bad", "host silent"],
};
const awayWords = () => AWAY[refusal.value?.code ?? ""];

/** States in which the lag is measured; in the other states nothing is being caught up. */
const MOVES: readonly LiveState[] = ["connecting", "live", "reconnecting"];
const LOOK_MS = 1000;

export function Live() {
  const { value: state } = liveState;
  const behind = useBehind(state);
  const words = state === "reconnecting" || state === "connecting" ? (awayWords() ?? WORDS[state]) : WORDS[state];
  if (!words) return null;
  const [look, word] = words;
  const isLate = state === "live" && behind !== null;
  return (
    <span class="push">
      <State look={isLate ? "wait" : look}>
        <span>
          {isLate ? `${behind} ` : null}
          {/* Screen readers do not read the seconds: they would, every second. */}
          <span role="status">{isLate ? "behind" : word}</span>
          {behind !== null && !isLate ? `, ${behind} behind` : null}
        </span>
      </State>
    </span>
  );
}

/** `4 s`; null if there is no lag. */
function useBehind(state: LiveState): string | null {
  const text = useSignal<string | null>(null);
  useEffect(() => {
    const look = () => {
      if (document.hidden) return;
      const ms = MOVES.includes(state) ? behindMs(heardSoFar(), Date.now()) : 0;
      text.value = ms === 0 ? null : ms < 60_000 ? `${Math.floor(ms / 1000)} s` : spanText(ms);
    };
    look();
    const timer = setInterval(look, LOOK_MS);
    return () => clearInterval(timer);
  }, [state]);
  return text.value;
}
