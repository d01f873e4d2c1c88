/**
 * Form for acting on a read-only page with the rights of a key: by a ticket, which a command creates and the user pastes. The ticket is
 * kept in memory only. Also the way to leave a view that captures every key.
 */
import { type Signal, useSignal } from "@preact/signals";
import type { ComponentChildren, RefObject } from "preact";
import { useEffect } from "preact/hooks";
import { Line } from "../components/parts.tsx";
import { visible } from "../components/text.tsx";

/** Number of consecutive Esc keys that leave; a single Esc is typed. */
const ESCAPES = 3;
const ESCAPES_MS = 1000;
/** Characters allowed in a subprotocol and a query, and so in a ticket. */
const TICKET = /^[\w-]{8,256}$/;

export interface TicketForm {
  name: string;
  /** The page's explanation, and the command that creates a ticket. */
  about: string;
  words: readonly string[];
  /** Prefix of the ticket, and the line of the command's output that has it. */
  prefix: string;
  line: string;
  ticket: Signal<string>;
  why: Signal<string | null>;
  field: RefObject<HTMLInputElement | null>;
  /** `button` is the pressed button. */
  begin(ticket: string, button: HTMLElement | null): void;
  children: ComponentChildren;
}

export function ByTicket({ name, about, words, prefix, line, ticket, why, field, begin, children }: TicketForm) {
  // Opened initially if there is a reason for a closed connection, so that the reason is visible.
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
          why.value = isOne ? null : `This is not a valid ticket: it starts with ${prefix} and is on the line ${line}.`;
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
