/** State of a watched terminal: the stream that draws it, the typing client, and its end. */
import type { Signal } from "@preact/signals";
import { pathOf } from "../../data/api.ts";
import { bytesOf } from "../../data/bytes.ts";
import { type Following, follow, type Over, type StreamLine } from "../../data/follow.ts";
import type { Screen } from "./screen.ts";

export interface Typist {
  name: string;
  since: string;
}

export interface Watched {
  state: Following;
  typist: Typist | null;
  rows: number;
  cols: number;
  /** Bytes that were output before the shown ones, or between them, and are no longer retained. */
  missed: number;
  exit: { exit_code: number | null; signal: string | null } | null;
  over: Over | null;
}

export const UNSEEN: Watched = {
  state: "connecting",
  typist: null,
  rows: 24,
  cols: 80,
  missed: 0,
  exit: null,
  over: null,
};

/** Draws until `left`, and resumes after a disconnect. Returns a function for the offset reached. */
export function watch(path: string, screen: Screen, shown: Signal<Watched>, left: AbortSignal): { reached(): number } {
  let after: number | null = null;
  const change = (some: Partial<Watched>) => {
    shown.value = { ...shown.value, ...some };
  };
  const lose = (gap: number, offset: number) => {
    if (gap <= 0) return;
    // After a gap, the state of the screen on which further bytes were drawn is unknown.
    if (after !== null) screen.reset();
    after = offset;
    change({ missed: shown.value.missed + gap });
  };
  const become = (event: StreamLine) => {
    const { rows, cols } = event as unknown as Pick<Watched, "rows" | "cols">;
    screen.resize(rows, cols);
    change({ rows, cols });
  };
  const take = async (event: StreamLine): Promise<boolean> => {
    switch (event.type) {
      case "watching":
        become(event);
        lose(Number(event.gap), Number(event.offset));
        change({ typist: event.typist as Typist | null });
        return false;
      case "resized":
        become(event);
        return false;
      case "typist":
        change({ typist: event.typist as Typist | null });
        return false;
      case "lost":
        lose(Number(event.gap), Number(event.offset));
        return false;
      case "output": {
        const bytes = bytesOf(event.data_b64);
        await screen.write(bytes);
        after = Number(event.offset) + bytes.byteLength;
        return false;
      }
      case "exit":
        change({ exit: event as unknown as Watched["exit"], typist: null });
        return true;
      default:
        return false;
    }
  };
  void follow(
    { path: () => pathOf(`${path}/watch`, { after }), take, became: (state) => change({ state }) },
    left,
  ).then((over) => {
    if (over) change({ over, state: "over" });
  });
  return { reached: () => after ?? 0 };
}
