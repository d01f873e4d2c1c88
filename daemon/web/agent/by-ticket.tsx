/**
 * Owns doing at a page that only looks what a key may: by a ticket, which a command makes and a person pastes. It is kept in memory
 * only. And how one leaves again what takes every key.
 */
import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { Line } from "../parts/parts.tsx";
import { visible } from "../parts/text.tsx";

/** So often in a row, Esc leaves: one alone is typed. */
const ESCAPES = 3;
const ESCAPES_MS = 1000;
/** What a subprotocol and a query may be made of, and so a ticket. */
const TICKET = /^[\w-]{8,256}$/;

export interface TicketForm {
  name: string;
  /** What the page says of it, and the command that makes one. */
  about: string;
  words: readonly string[];
  /** What the ticket begins with, and which of the command's lines it is on. */
  prefix: string;
  line: string;
  ticket: Signal<string>;
  why: Signal<string | null>;
  field: RefObject<HTMLInputElement | null>;
  /** `button` is the one that was pressed. */
  begin(ticket: string, button: HTMLElement | null): void;
  children: ComponentChildren;
}

export function ByTicket({ name, about, words, prefix, line, ticket, why, field, begin, children }: TicketForm) {
  // Why one was put out is to be seen.
  const isOpen = useSignal(why.value !== null);
  return (
    <details
      class="by-ticket"
      open={isOpen.value}
      onToggle={({ currentTarget }) => {
        isOpen.value = currentTarget.open;
      }}
    >
      <summary>{name}</summary>
      <p>{about}</p>
      <Line words={words} />
      <form
        class="row"
        onSubmit={(event) => {
          event.preventDefault();
          const given = ticket.value.trim();
          const isOne = TICKET.test(given) && given.startsWith(prefix);
          why.value = isOne ? null : `This is no ticket: it begins with ${prefix} and is on the line ${line}.`;
          if (isOne) begin(given, event.submitter);
        }}
      >
        <div class="field">
          <label for="ticket">The ticket</label>
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
        {children}
      </form>
      {why.value ? <p class="warning">{visible(why.value)}</p> : null}
    </details>
  );
}

/** While `isOn`, Esc three times in a row within `box` leaves. */
export function useEscapes(isOn: boolean, box: RefObject<HTMLElement | null>, leave: () => void): void {
  useEffect(() => (isOn ? leaveByEscape(box.current, leave) : undefined), [isOn]);
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
