/**
 * Form for typing at a watched terminal. It needs a ticket, which a key creates and the user pastes: it is kept in memory only. Output
 * still comes from the watch stream; the ticket's connection is used for input only.
 */
import { useSignal } from "@preact/signals";
import type { RefObject } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { visible } from "../../components/text.tsx";
import { say } from "../../shell/announcer.ts";
import { ByTicket, useEscapes } from "../by-ticket.tsx";
import type { TerminalPlace } from "./place.ts";
import type { Screen } from "./screen.ts";
import { type Typing, typeBy } from "./ticket.ts";

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
  const why = useSignal<string | null>(null);
  const typing = useRef<Typing | null>(null);
  const field = useRef<HTMLInputElement>(null);
  const isTyping = useSignal(false);
  useEffect(() => () => typing.current?.leave(), []);
  useEscapes(isTyping.value, box, () => typing.current?.leave());

  const begin = (given: string, takesOver: boolean) => {
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
    <ByTicket
      name="Type here"
      about="View only. With a ticket from a key with permission, you type in this terminal, and in no other:"
      words={["terminal", "token", place.room, place.agent, place.terminal]}
      prefix="ttk_"
      line="token"
      {...{ ticket, why, field }}
      begin={(given, button) => begin(given, typist !== null && button?.dataset.takes !== undefined)}
    >
      {typist === null ? (
        <button type="submit" class="button">
          Type
        </button>
      ) : (
        <button type="submit" class="button bad" data-takes>
          Take over from {visible(typist.slice(0, 60))}
        </button>
      )}
    </ByTicket>
  );
}
