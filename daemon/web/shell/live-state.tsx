/** Owns what is said of the stream: whether what one sees is what is. */
import { heardAt, liveState } from "../data/live.ts";
import { State } from "../parts/parts.tsx";
import { nowMs, spanText } from "../parts/text.tsx";

const WORDS = {
  off: null,
  connecting: ["busy", "connecting"],
  live: ["live", "live"],
  reconnecting: ["wait", "reconnecting"],
  hidden: ["quiet", "paused while hidden"],
  over: ["quiet", "ended"],
  "signed-out": ["bad", "signed out"],
} as const;

export function Live() {
  const words = WORDS[liveState.value];
  if (!words) return null;
  const [look, word] = words;
  const behindMs = nowMs.value - heardAt.value;
  const isBehind = liveState.value === "reconnecting" && behindMs > 10_000;
  return (
    <span class="push" role="status">
      <State look={look}>{isBehind ? `${word}, ${spanText(behindMs)} behind` : word}</State>
    </span>
  );
}
