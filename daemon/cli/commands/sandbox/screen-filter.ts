/**
 * Filter for a sandbox's terminal output that is only watched: text, colours, and cursor positions pass. Everything with another effect on
 * the watcher's terminal is dropped: the clipboard, titles, links, sounds, printing, the mouse and the keyboard, and every query that a
 * terminal answers as if it were typed.
 *
 *   text ──ESC──▶ escape ─┬─ [ ──▶ csi ──its last character──▶ text
 *                         ├─ ] P X ^ _ ──▶ string ──BEL, ESC──▶ text, escape
 *                         └─ ( ) and the like ──▶ one character more ──▶ text
 */

type State = "text" | "escape" | "csi" | "string" | "charset" | "skipped";

const ESC = "\x1b";
const BEL = "\x07";
/** Characters that abort any sequence (CAN, SUB). */
const CUT = "\x18\x1a";
const CONTROLS = "\b\t\n\v\f\r\x0e\x0f";
const STRINGS = "]PX^_";
/** Escape sequences: save and restore cursor, index, next line, set tab, reverse index. */
const ESCAPES = "78DEHM";
/** Character sets that change only the appearance of text: line drawing, British, ASCII. */
const CHARSETS = "0AB";
/** Final bytes of control sequences: cursor, erase, insert and delete, scroll, tabs, repeat, colours, scroll region. */
const SEQUENCES = "@ABCDEFGHIJKLMPSTXZ`abdefgmrsu";
/** Origin, wrap, cursor, alternate screen, synchronized updates. */
const PRIVATE_MODES = ["6", "7", "25", "1049", "2026"];
const INSERT_MODE = "4";
const ERASE_SCROLLBACK = "3";
const MAX_CHARACTERS = 64;
/** Colours given by components have the most digits; a larger repeat count would keep the terminal busy. */
const PARAMETERS = /^(\??)((?:\d{0,4}[;:])*\d{0,4})$/;

/** Restores the modes that a program still drawing has changed; colours and cursor are LocalTerminal's. */
export const AS_BEFORE = `${ESC}7${ESC}[r${ESC}[4l${ESC}[?6l${ESC}[?7h${ESC}[?2026l${ESC}(B\x0f${ESC}8`;

/** Filter of one terminal's output, which may arrive in chunks of any size. */
export class ScreenFilter {
  readonly #decoder = new TextDecoder();
  #state: State = "text";
  /** Start of a sequence that is still incomplete. */
  #begun = "";

  pass(bytes: Uint8Array): string {
    let shown = "";
    for (const character of this.#decoder.decode(bytes, { stream: true })) shown += this.#step(character);
    return shown;
  }

  #step(character: string): string {
    if (character === ESC) return this.#become("escape");
    if (CUT.includes(character)) return this.#become("text");
    switch (this.#state) {
      case "text":
        return isShown(character) ? character : "";
      case "escape":
        return this.#escape(character);
      case "csi":
        return this.#csi(character);
      case "string":
        return character === BEL ? this.#become("text") : "";
      case "charset": {
        const isKnown = CHARSETS.includes(character) && "()".includes(this.#begun);
        return this.#become("text", isKnown ? ESC + this.#begun + character : "");
      }
      case "skipped":
        return this.#become("text");
    }
  }

  #escape(character: string): string {
    if (character === "[") return this.#become("csi");
    if (STRINGS.includes(character)) return this.#become("string");
    if ("()*+".includes(character)) {
      this.#become("charset");
      this.#begun = character;
      return "";
    }
    if (" #%-./".includes(character)) return this.#become("skipped");
    // A full reset would clear the scrollback here, too.
    if (character === "c") return this.#become("text", `${ESC}[0m${ESC}[r${ESC}[H${ESC}[2J`);
    return this.#become("text", ESCAPES.includes(character) ? ESC + character : "");
  }

  #csi(character: string): string {
    if (character < " ") return isShown(character) ? character : "";
    if (character >= "@") return this.#become("text", sequence(this.#begun, character));
    // A sequence this long is unknown in any case; more need not be stored to find that out.
    if (this.#begun.length <= MAX_CHARACTERS) this.#begun += character;
    return "";
  }

  #become(state: State, shown = ""): string {
    this.#state = state;
    this.#begun = "";
    return shown;
  }
}

function isShown(character: string): boolean {
  const code = character.codePointAt(0) ?? 0;
  return code < 0x20 ? CONTROLS.includes(character) : code < 0x7f || code > 0x9f;
}

/** The filtered control sequence; empty if nothing of it may pass. */
function sequence(parameters: string, last: string): string {
  const [, mark = "", numbers = ""] = PARAMETERS.exec(parameters) ?? [undefined, "none"];
  if (parameters.length > MAX_CHARACTERS || mark === "none") return "";
  if (last === "h" || last === "l") {
    const isKnown = (mode: string) => (mark === "?" ? PRIVATE_MODES.includes(mode) : mode === INSERT_MODE);
    return numbers
      .split(";")
      .filter(isKnown)
      .map((mode) => `${ESC}[${mark}${mode}${last}`)
      .join("");
  }
  if (mark !== "" || !SEQUENCES.includes(last)) return "";
  if (last === "J" && numbers === ERASE_SCROLLBACK) return "";
  // With several parameters, T starts mouse tracking.
  if (last === "T" && numbers.includes(";")) return "";
  return `${ESC}[${numbers}${last}`;
}
