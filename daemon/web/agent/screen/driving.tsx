/** Controls of a user who drives a screen: leave, the size of the screen, and its clipboard in both directions. */
import { type Signal, useSignal } from "@preact/signals";
import { useRef } from "preact/hooks";
import { Choices, Copy } from "../../components/parts.tsx";
import { countText } from "../../components/text.tsx";
import { say } from "../../shell/announcer.ts";
import { type Copied, MAX_COPIED } from "./copied.ts";
import { type Size, withinBounds } from "./sizes.ts";
import type { Seat, ViewState } from "./viewing.ts";

/** The template's size, and the size that most pages are made for. */
const SIZES: readonly Size[] = [
  { width: 1280, height: 800 },
  { width: 1920, height: 1080 },
];

interface Driving {
  seen: ViewState;
  /** Null while the screen is not live. */
  seat(): Seat | null;
  /** Size of the area in which the screen can be drawn at one screen pixel per page pixel. */
  room(): Size;
  leave(): void;
  /** Text that the user is writing for its clipboard. */
  text: Signal<string>;
}

export function Driving({ seen, seat, room, leave, text }: Driving) {
  return (
    <>
      <p>
        <button type="button" class="button" onClick={leave}>
          Stop driving
        </button>{" "}
        <span class="muted">
          or press <kbd>Esc</kbd> three times. Keys and pointer reach the screen; the keys of this page do not work
          there.
        </span>
      </p>
      <SizeOf {...{ seen, seat, room }} />
      <IntoClipboard {...{ seat, text }} />
      <FromClipboard copied={seen.copied} />
    </>
  );
}

const nameOf = ({ width, height }: Size) => `${width} × ${height}`;
const FIT = "fit";

function SizeOf({ seen, seat, room }: Omit<Driving, "leave" | "text">) {
  /** The size at the time of the request. */
  const fitted = useSignal("");
  const now = nameOf(seen);
  const choose = (chosen: string) => {
    const size = SIZES.find((each) => nameOf(each) === chosen) ?? withinBounds(room());
    fitted.value = chosen === FIT ? nameOf(size) : "";
    const there = seat();
    if (!there) return say(NOT_LIVE);
    there.resize(size);
    say(nameOf(size) === now ? `The screen is ${now}.` : `Requested ${nameOf(size)}.`);
  };
  return (
    <div class="screen-size">
      <span aria-hidden="true">Size of the screen</span>
      <Choices
        label="Size of the screen"
        of={[[FIT, "Fit to this window"], ...SIZES.map((each) => [nameOf(each), nameOf(each)] as const)]}
        at={fitted.value === now ? FIT : now}
        choose={choose}
      />
    </div>
  );
}

function IntoClipboard({ seat, text }: Pick<Driving, "seat" | "text">) {
  return (
    <form
      class="row"
      onSubmit={(event) => {
        event.preventDefault();
        const there = seat();
        if (!there) return say(NOT_LIVE);
        there.paste(text.value);
        say("It is in the clipboard of the screen.");
        there.focus();
      }}
    >
      <div class="field">
        <label for="clipboard">Text for its clipboard</label>
        <input
          id="clipboard"
          type="text"
          autocomplete="off"
          value={text.value}
          onInput={({ currentTarget }) => {
            text.value = currentTarget.value;
          }}
        />
      </div>
      <button type="submit" class="button">
        Copy into it
      </button>
    </form>
  );
}

/** The browser writes to the user's own clipboard only on a click. */
function FromClipboard({ copied }: { copied: Copied | null }) {
  const field = useRef<HTMLTextAreaElement>(null);
  if (!copied) {
    return (
      <p class="muted">
        Text that is copied on the screen while you drive appears in this place; it is not sent to viewers.
      </p>
    );
  }
  return (
    <div class="field from-screen">
      <label for="copied">Copied on the screen</label>
      <textarea id="copied" readOnly rows={4} dir="auto" spellcheck={false} ref={field} value={copied.text} />
      {copied.left > 0 ? (
        <small>
          These are the first {countText(MAX_COPIED)} characters; {countText(copied.left)} more were left out.
        </small>
      ) : null}
      <p>
        <Copy text={copied.text} mark={() => field.current?.select()} />
      </p>
    </div>
  );
}

const NOT_LIVE = "The screen is not live at the moment.";
