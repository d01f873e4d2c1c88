/**
 * The text of a command's output: bytes of two streams in pieces, as lines. Escape sequences for terminals are removed, and only the newest
 * 5 MB or 50,000 lines are kept.
 */

export type Stream = "stdout" | "stderr";

export interface Line {
  /** Index among all lines of the output, from 0, dropped lines included. */
  n: number;
  stream: Stream;
  text: string;
}

export const MAX_LINES = 50_000;
export const MAX_CHARACTERS = 5_000_000;
/** A longer line is continued on the next. */
export const LONGEST_LINE = 4000;
/** Dropped lines are removed from the list in batches of this size: each removal copies the rest. */
const PORTION = 5000;

export class Output {
  readonly #streams = { stdout: new Reader(), stderr: new Reader() };
  #lines: Line[] = [];
  /** Number of lines dropped from the start of the list. */
  #gone = 0;
  #characters = 0;
  #begun = 0;
  /** Dropped lines and bytes. */
  readonly left = { lines: 0, bytes: 0 };
  /** Earlier output is no longer retained by the sandbox. */
  isCut = false;

  get length(): number {
    return this.#lines.length - this.#gone;
  }

  /** By its index among the kept lines. */
  at(index: number): Line | undefined {
    return this.#lines[this.#gone + index];
  }

  push(stream: Stream, bytes: Uint8Array): void {
    const reader = this.#streams[stream];
    for (const { text, isEnd } of reader.read(bytes)) {
      this.#add(stream, reader, text);
      if (isEnd) reader.open = null;
    }
    this.#letGo();
  }

  /** A character that is truncated in the middle is shown as invalid. */
  end(): void {
    for (const stream of ["stdout", "stderr"] as const) {
      const reader = this.#streams[stream];
      for (const { text } of reader.rest()) this.#add(stream, reader, text);
    }
  }

  #add(stream: Stream, reader: Reader, text: string): void {
    let rest = text;
    do {
      reader.open ??= this.#begin(stream);
      const taken = rest.slice(0, LONGEST_LINE - reader.open.text.length);
      reader.open.text += taken;
      this.#characters += taken.length;
      rest = rest.slice(taken.length);
      if (rest !== "") reader.open = null;
    } while (rest !== "");
  }

  #begin(stream: Stream): Line {
    const line: Line = { n: this.#begun++, stream, text: "" };
    this.#lines.push(line);
    return line;
  }

  #letGo(): void {
    while (this.length > MAX_LINES || this.#characters > MAX_CHARACTERS) {
      const line = this.#lines[this.#gone];
      if (!line) break;
      this.#gone++;
      this.#characters -= line.text.length;
      this.left.lines++;
      this.left.bytes += line.text.length + 1;
      // Its remaining text starts a new line.
      for (const reader of Object.values(this.#streams)) if (reader.open === line) reader.open = null;
    }
    if (this.#gone < PORTION) return;
    this.#lines = this.#lines.slice(this.#gone);
    this.#gone = 0;
  }
}

type State = "text" | "escape" | "sequence" | "string" | "charset";

/**
 * Splits one stream's bytes into pieces of lines.
 *
 *   text ──ESC──▶ escape ─┬─ [ ──▶ sequence ──its last character──▶ text
 *                         ├─ ] P X ^ _ ──▶ string ──BEL, ESC──▶ text, escape
 *                         └─ ( ) and the like ──▶ charset ──one character──▶ text
 */
class Reader {
  /** The unfinished line. */
  open: Line | null = null;
  readonly #decoder = new TextDecoder();
  #state: State = "text";
  /** A carriage return was read, and the next character is not known yet. */
  #isReturned = false;

  *read(bytes: Uint8Array): Generator<{ text: string; isEnd: boolean }> {
    yield* this.#pieces(this.#decoder.decode(bytes, { stream: true }));
  }

  *rest(): Generator<{ text: string; isEnd: boolean }> {
    yield* this.#pieces(this.#decoder.decode());
  }

  /** Characters are examined one by one only from an ESC to the end of its sequence. */
  *#pieces(text: string): Generator<{ text: string; isEnd: boolean }> {
    let from = 0;
    for (let at = 0; at < text.length; ) {
      if (this.#state !== "text") {
        const character = text[at] ?? "";
        // A line end also ends an unterminated sequence: otherwise all further text would be dropped.
        if (character === "\n") this.#state = "text";
        else {
          this.#step(character);
          at++;
        }
        from = at;
        continue;
      }
      if (this.#isReturned) {
        this.#isReturned = false;
        // It is part of `\r\n`; alone it would overwrite the line, which would hide earlier text.
        if (text[at] !== "\n" && this.open) yield { text: "", isEnd: true };
      }
      const end = nextOf(text, at);
      const character = text[end];
      if (character === undefined) {
        yield { text: text.slice(from), isEnd: false };
        return;
      }
      const isEnd = character === "\n";
      if (end > from || isEnd) yield { text: text.slice(from, end), isEnd };
      if (character === "\x1b") this.#state = "escape";
      if (character === "\r") this.#isReturned = true;
      at = end + 1;
      from = at;
    }
  }

  #step(character: string): void {
    if (character === "\x1b") this.#state = "escape";
    else if (this.#state === "escape") this.#state = stateAfter(character);
    else if (this.#state === "charset") this.#state = "text";
    else if (this.#state === "string") this.#state = character === "\x07" ? "text" : "string";
    else if (character >= "@" || character < " ") this.#state = "text";
  }
}

const stateAfter = (character: string): State =>
  character === "["
    ? "sequence"
    : "]PX^_".includes(character)
      ? "string"
      : "()*+ #%".includes(character)
        ? "charset"
        : "text";

// biome-ignore lint/suspicious/noControlCharactersInRegex: a sequence begins with it
const NEXT = /[\n\r\x1b]/g;

function nextOf(text: string, from: number): number {
  NEXT.lastIndex = from;
  return NEXT.exec(text)?.index ?? text.length;
}
