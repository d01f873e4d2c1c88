/** Live view of a screen, and driving it with a ticket. */
import { useSignal } from "@preact/signals";
import { useEffect, useRef } from "preact/hooks";
import { State, Trouble } from "../../components/parts.tsx";
import { visible } from "../../components/text.tsx";
import type { Following } from "../../data/follow.ts";
import { say } from "../../shell/announcer.ts";
import { ByTicket, useEscapes } from "../by-ticket.tsx";
import { Driving } from "./driving.tsx";
import { Picture } from "./picture.tsx";
import type { Size } from "./sizes.ts";
import { type Seat, UNSEEN, type ViewState, view } from "./viewing.ts";

const WORDS: Record<Following, readonly [look: "busy" | "live" | "wait" | "quiet", word: string]> = {
  connecting: ["busy", "connecting"],
  live: ["live", "seen live"],
  reconnecting: ["wait", "reconnecting"],
  hidden: ["quiet", "paused while hidden"],
  over: ["quiet", "not seen live"],
};

export function Live({ path, room, agent }: { path: string; room: string; agent: string }) {
  const box = useRef<HTMLDivElement>(null);
  const field = useRef<HTMLInputElement>(null);
  const seat = useRef<Seat | null>(null);
  const seen = useSignal<ViewState>(UNSEEN);
  /** Ticket with which the user drives; null while the user only views. */
  const drivesBy = useSignal<string | null>(null);
  const ticket = useSignal("");
  const why = useSignal<string | null>(null);
  const text = useSignal("");
  useEffect(() => {
    const { current } = box;
    if (!current) return;
    const left = new AbortController();
    seen.value = UNSEEN;
    const seated = (now: Seat | null) => {
      seat.current = now;
      if (now === null || drivesBy.value === null) return;
      now.focus();
      say("You drive the screen. Press Esc three times to leave.");
    };
    void view({ path, ticket: drivesBy.value }, current, { seen, seated }, left.signal).catch(() => {
      if (!left.signal.aborted) seen.value = { ...UNSEEN, state: "over", over: NOT_LOADED };
    });
    return () => {
      left.abort();
      seat.current = null;
    };
  }, [path, drivesBy.value]);
  const leave = () => {
    drivesBy.value = null;
    say("You no longer drive the screen.");
  };
  const { state, drives, width, height, over } = seen.value;
  const drove = useRef(false);
  useEffect(() => {
    // Not into the field: the user has just left it.
    if (drove.current && !drives) box.current?.parentElement?.querySelector("summary")?.focus();
    drove.current = drives;
  }, [drives]);
  useEscapes(drives, box, leave);
  const isCopied = seen.value.copied !== null;
  useEffect(() => {
    if (isCopied) say("Something was copied on the screen.");
  }, [isCopied]);
  // When the ticket ends, the view continues without it.
  useEffect(() => {
    if (over === null || drivesBy.value === null) return;
    why.value = typeof over === "string" ? over : over.detail;
    say(why.value);
    seen.value = UNSEEN;
    drivesBy.value = null;
  }, [over]);
  const [look, word] = WORDS[state];
  /** A refused connection has no picture either. */
  const isRefused = over !== null && typeof over !== "string";
  return (
    <>
      <p class="output-head">
        <State look={look}>{word}</State>
        {drives ? <State look="busy">you drive</State> : null}
        {width > 0 ? (
          <span class="muted">
            {width} × {height}
          </span>
        ) : null}
      </p>
      <section
        class={state === "live" ? "screen-live" : "screen-live waits"}
        data-keys={drives ? "" : undefined}
        aria-label="Screen contents"
        ref={box}
      />
      {state === "live" || isRefused ? null : <Picture path={path} />}
      {typeof over === "string" ? <p class="warning">{visible(over)}</p> : null}
      {isRefused ? <Trouble problem={over} /> : null}
      {drives ? (
        <Driving seen={seen.value} seat={() => seat.current} room={() => roomOf(box.current)} {...{ leave, text }} />
      ) : (
        <ByTicket
          name="Drive it"
          about="View only. With a ticket from a key with permission, keys, pointer and clipboard reach this screen, and no other:"
          words={["screen", room, agent, "--ticket", "--drive"]}
          prefix="sdt_"
          line="ticket"
          {...{ ticket, why, field }}
          begin={(given) => {
            drivesBy.value = given;
          }}
        >
          <button type="submit" class="button">
            Drive
          </button>
        </ByTicket>
      )}
    </>
  );
}

/** Maximum size of the box: its width, and its CSS maximum height. */
function roomOf(box: HTMLElement | null): Size {
  return { width: box?.clientWidth ?? 0, height: box ? Number.parseFloat(getComputedStyle(box).maxHeight) : 0 };
}

const NOT_LOADED = "The program that draws the screen could not be loaded. Reload the page.";
