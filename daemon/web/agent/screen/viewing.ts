/**
 * Live view of a screen: its WebSocket, drawn by noVNC, reconnected after a failure, and closed while the tab is hidden.
 *
 *     connecting ──▶ live ──▶ reconnecting ──▶ live        any ──▶ hidden (the tab) ──▶ connecting
 *                      └──▶ over
 */
import type { Signal } from "@preact/signals";
import type { Problem } from "../../../../shared/api/errors.ts";
import type { SCREEN_CLOSE, ScreenClose } from "../../../../shared/api/screen.ts";
import type { TOKEN_PROTOCOL_PREFIX } from "../../../../shared/api/terminals.ts";
import { backoffMs } from "../../../../shared/backoff.ts";
import { ask, Refused } from "../../data/api.ts";
import { type Following, later, untilSeen } from "../../data/follow.ts";
import { type Copied, copiedOf } from "./copied.ts";
import { BOUNDS, resizer, type Size } from "./sizes.ts";

export interface ViewState {
  state: Following;
  /** Whether the user's input reaches the screen. */
  drives: boolean;
  width: number;
  height: number;
  /** Last text that a program of the guest copied; null if absent, or while the user only views. */
  copied: Copied | null;
  /** Why nothing more comes. */
  over: Problem | string | null;
}

export const UNSEEN: ViewState = { state: "connecting", drives: false, width: 0, height: 0, copied: null, over: null };

/** Actions of a user at a screen, besides keys and pointer. */
export interface Seat {
  focus(): void;
  /** Pastes into the screen's clipboard. */
  paste(text: string): void;
  /** Requests another size, within bounds. */
  resize(size: Size): void;
}

/** A screen that was live for this long counts as stable: its next retry is soon. */
const LIVE_MS = 10_000;
/** Maximum pixels of a side that a page draws; a guest may report any number. */
const MAX_SIDE = BOUNDS.most.width;
/** A program may copy as often as it likes: the latest text is shown after this delay. */
const COPIED_MS = 200;
/** With a ticket that was never accepted: number of attempts before it counts as invalid. */
const TRIES = 3;
/** The same for a ticket that was accepted before. */
const TRIES_AGAIN = 10;
/** While no connection can be made, pictures are taken instead. */
const RETRY_MS = { first: 500, most: 30_000 } as const;

type Code = (typeof SCREEN_CLOSE)[ScreenClose];
/** After these codes there is no automatic reconnect. */
const WHY: Partial<Record<Code, string>> = {
  4000: "The service received a malformed message. Reload the page.",
  4003: "The sandbox is no longer running.",
};

/** Draws into `box` until `left`. With a ticket that permits driving, keys and pointer are forwarded until the ticket becomes invalid. */
export async function view(
  { path, ticket }: { path: string; ticket: string | null },
  box: HTMLElement,
  { seen, seated }: { seen: Signal<ViewState>; seated(seat: Seat | null): void },
  left: AbortSignal,
): Promise<void> {
  const change = (some: Partial<ViewState>) => {
    if (!left.aborted) seen.value = { ...seen.value, ...some };
  };
  const { default: RFB } = await import("@novnc/novnc");
  let attempt = 0;
  let refusals = 0;
  let hasDriven = false;
  while (!left.aborted) {
    if (document.hidden) {
      change({ state: "hidden", drives: false });
      await untilSeen(left);
      continue;
    }
    if (seen.value.state !== "reconnecting") change({ state: "connecting", drives: false });
    const closeCode = await once();
    if (left.aborted) return;
    seated(null);
    if (document.hidden) continue;
    change({ state: "reconnecting", drives: false });
    if (closeCode === null) {
      // A browser does not report why a WebSocket was refused: a request for a picture does.
      const why = await whyNot(path, left);
      refusals++;
      if (ticket !== null && why === null && refusals === (hasDriven ? TRIES_AGAIN : TRIES)) {
        return change({ state: "over", over: NOT_LET });
      }
      if (why !== null && !why.retryable && why.status !== 0) return change({ state: "over", over: why });
    } else if (closeCode === TOO_LARGE) {
      return change({ state: "over", over: `The screen is larger than ${MAX_SIDE} pixels a side.` });
    } else if (WHY[closeCode] || (ticket !== null && closeCode === UNAUTHORIZED)) {
      return change({
        state: "over",
        over: WHY[closeCode] ?? "The key that made the ticket was revoked or has expired.",
      });
    }
    await later(backoffMs(RETRY_MS, attempt++), left);
  }

  /** Resolves once the connection is over, with the close code of the service; null if it was never open. */
  async function once(): Promise<Code | typeof TOO_LARGE | null> {
    const url = new URL(`${path}/ws`, location.href);
    url.protocol = location.protocol === "https:" ? "wss:" : "ws:";
    // The ticket is not in the URL: URLs may be logged.
    const socket = new WebSocket(url, ["binary", ...(ticket === null ? [] : [PREFIX + ticket])]);
    // A separate element: the previous one may still be closing.
    const place = box.appendChild(document.createElement("div"));
    const screen = new RFB(place, socket, { shared: true });
    const stop = new AbortController();
    const signal = AbortSignal.any([left, stop.signal]);
    screen.viewOnly = ticket === null;
    screen.scaleViewport = true;
    screen.background = "transparent";
    screen.qualityLevel = 8;
    let isOpen = false;
    let isTooLarge = false;
    let liveSince = Number.POSITIVE_INFINITY;
    socket.addEventListener("open", () => {
      isOpen = true;
      refusals = 0;
    });
    const canvas = place.querySelector("canvas");
    const sizes = resizer(screen, place, signal);
    const sized = new MutationObserver(() => {
      const { width = 0, height = 0 } = canvas ?? {};
      isTooLarge ||= width > MAX_SIDE || height > MAX_SIDE;
      if (isTooLarge) return screen.disconnect();
      if (width > 0 && height > 0) box.style.aspectRatio = `${width} / ${height}`;
      change({ width, height });
      sizes.became({ width, height });
    });
    if (canvas) sized.observe(canvas, { attributeFilter: ["width", "height"] });
    screen.addEventListener("connect", () => {
      liveSince = performance.now();
      hasDriven ||= ticket !== null;
      change({ state: "live", drives: ticket !== null });
      seated({
        focus: () => screen.focus(),
        paste: (text) => screen.clipboardPasteFrom(text),
        resize: sizes.ask,
      });
    });
    let last: string | null = null;
    screen.addEventListener("clipboard", (event) => {
      const isOnItsWay = last !== null;
      last = (event as CustomEvent<{ text: string }>).detail.text;
      if (isOnItsWay) return;
      setTimeout(() => {
        change({ copied: copiedOf(last ?? "") });
        last = null;
      }, COPIED_MS);
    });
    const leave = () => screen.disconnect();
    left.addEventListener("abort", leave, { signal });
    document.addEventListener("visibilitychange", () => (document.hidden ? leave() : undefined), { signal });
    let code = 0;
    socket.addEventListener("close", (event) => {
      code = event.code;
    });
    await new Promise((resolve) => screen.addEventListener("disconnect", resolve));
    stop.abort();
    sized.disconnect();
    place.remove();
    if (performance.now() - liveSince > LIVE_MS) attempt = 0;
    if (isTooLarge) return TOO_LARGE;
    return isOpen ? (code as Code) : null;
  }
}

const UNAUTHORIZED = 4002 satisfies Code;
const TOO_LARGE = "too large";
const PREFIX = "roomd.token." satisfies typeof TOKEN_PROTOCOL_PREFIX;
const NOT_LET =
  "The service rejected this ticket. It is for another screen, has expired, or the screen has too many viewers already.";

/** Why a picture of the screen is refused as well; null if it is not. */
async function whyNot(path: string, left: AbortSignal): Promise<Problem | null> {
  try {
    await ask(path, { Accept: "image/png" }, left).then((response) => response.body?.cancel());
    return null;
  } catch (error) {
    if (error instanceof Refused) return error.problem;
    if (left.aborted) return null;
    throw error;
  }
}
