/**
 * Owns typing at a terminal that is watched. It needs a ticket, which a key makes and a person pastes: it is kept in memory only. What
 * is shown goes on coming by watching; by the ticket's connection things are only typed.
 */
import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { Line } from "../../parts/parts.tsx";
import { visible } from "../../parts/text.tsx";
import { say } from "../../shell/said.ts";
import type { TerminalPlace } from "./place.ts";
import type { Screen } from "./screen.ts";
import { isTicket, type Typing, typeBy } from "./ticket.ts";

/** So often in a row, Esc leaves the terminal: one alone is typed. */
const ESCAPES = 3;
const ESCAPES_MS = 1000;

export function TypeHere({
  place,
  screen,
  reached,
  typist,
  box,
  became,
}: {
  place: TerminalPlace;
  screen: Screen;
  reached: () => number;
  typist: string | null;
  box: RefObject<HTMLElement | null>;
  became: (isTyping: boolean) => void;
}) {
  const ticket = useSignal("");
  const isOpen = useSignal(false);
  const why = useSignal<string | null>(null);
  const typing = useRef<Typing | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const isTyping = useSignal(false);
  useEffect(() => () => typing.current?.leave(), []);
  useEffect(
    () => (isTyping.value ? leaveByEscape(box.current, () => typing.current?.leave()) : undefined),
    [isTyping.value],
  );

  const begin = (takesOver: boolean) => {
    const given = ticket.value.trim();
    if (!isTicket(given)) {
      why.value = "This is no ticket: it begins with ttk_ and is on the line `token`.";
      return;
    }
    why.value = null;
    let stop = () => {};
    const now = typeBy(
      { path: place.path, ticket: given, since: reached(), takesOver },
      {
        opened() {
          stop = screen.type((bytes) => now.send(bytes));
          isTyping.value = true;
          became(true);
          say("You type. Press Esc three times to leave.");
        },
        over(reason) {
          stop();
          isTyping.value = false;
          became(false);
          typing.current = null;
          why.value = reason;
          field.current?.focus();
          say(reason ?? "You no longer type.");
        },
      },
    );
    typing.current = now;
  };

  if (isTyping.value) {
    return (
      <p>
        <button type="button" class="button" onClick={() => typing.current?.leave()}>
          Stop typing
        </button>{" "}
        <button
          type="button"
          class="button"
          onClick={() => {
            const size = screen.sizeHere();
            if (size) typing.current?.resize(size);
            box.current?.querySelector("textarea")?.focus();
          }}
        >
          Fit it to this page
        </button>{" "}
        <span class="muted">
          or press <kbd>Esc</kbd> three times. The keys of this page do not work in the terminal.
        </span>
      </p>
    );
  }
  return (
    <details
      class="type-here"
      open={isOpen.value}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>Type here</summary>
      <p>This page only looks. With a ticket of a key that may, you type at this terminal, and at no other:</p>
      <Line words={["terminal", "token", place.room, place.agent, place.terminal]} />
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          begin(typist !== null && event.submitter?.dataset.takes !== undefined);
        }}
      >
        <div class="field">
          <label for="ticket">Its token</label>
          <input
            id="ticket"
            ref={field}
            type="text"
            autocomplete="off"
            spellcheck={false}
            value={ticket.value}
            onInput={({ currentTarget }) => {
              ticket.value = currentTarget.value;
            }}
          />
        </div>
        {typist === null ? (
          <button type="submit" class="button">
            Type
          </button>
        ) : (
          <button type="submit" class="button bad" data-takes>
            Take over from {visible(typist.slice(0, 60))}
          </button>
        )}
      </form>
      {why.value ? <p class="warning">{visible(why.value)}</p> : null}
    </details>
  );
}

function leaveByEscape(box: HTMLElement | null, leave: () => void): () => void {
  const pressed: number[] = [];
  const onKey = ({ key, timeStamp }: KeyboardEvent) => {
    if (key !== "Escape") {
      pressed.length = 0;
      return;
    }
    pressed.push(timeStamp);
    if (timeStamp - (pressed.at(-ESCAPES) ?? Number.NEGATIVE_INFINITY) < ESCAPES_MS) leave();
  };
  box?.addEventListener("keydown", onKey, true);
  return () => box?.removeEventListener("keydown", onKey, true);
}
