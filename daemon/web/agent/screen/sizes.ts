/** The size of a screen: its bounds, and requests for another size. */
import type RFB from "@novnc/novnc";
import type { SCREEN_SIZE } from "../../../../shared/api/screen.ts";
import { later } from "../../data/follow.ts";

export interface Size {
  width: number;
  height: number;
}

export const BOUNDS = {
  least: { width: 320, height: 200 },
  most: { width: 4096, height: 4096 },
} satisfies typeof SCREEN_SIZE;
/** noVNC drops a request that comes sooner after the previous one, or before its reply. */
const BETWEEN_MS = 150;
/** After this time without a response, the screen may have refused the size. */
const ANSWER_MS = 5000;

/** The nearest size that a screen accepts. */
export function withinBounds({ width, height }: Size): Size {
  const { least, most } = BOUNDS;
  const nearest = (side: number, low: number, high: number) => Math.floor(Math.min(Math.max(side, low), high));
  return { width: nearest(width, least.width, most.width), height: nearest(height, least.height, most.height) };
}

/** Requests one size at a time; of sizes chosen in the meantime, only the newest. */
export function resizer(screen: RFB, place: HTMLElement, left: AbortSignal) {
  let now = "";
  let requested: Size | null = null;
  let isAsking = false;
  let answered = () => {};
  return {
    /** Reports the screen's new size. */
    became({ width, height }: Size): void {
      now = `${width}x${height}`;
      answered();
    },
    async ask(size: Size): Promise<void> {
      requested = size;
      if (isAsking) return;
      isAsking = true;
      while (requested && !left.aborted) {
        const { width, height }: Size = requested;
        requested = null;
        if (`${width}x${height}` === now) continue;
        const answer = new Promise<void>((resolve) => {
          answered = resolve;
        });
        // noVNC requests the size of its element, which is temporarily this one.
        Object.assign(place.style, { width: `${width}px`, height: `${height}px` });
        screen.resizeSession = true;
        screen.resizeSession = false;
        Object.assign(place.style, { width: "", height: "" });
        await Promise.all([later(BETWEEN_MS, left), Promise.race([answer, later(ANSWER_MS, left)])]);
      }
      isAsking = false;
    },
  };
}
