/** Keys typed at `roomd shell`: bytes for the sandbox, except commands of the client, which start with ~ at the beginning of a line. */
const TILDE = 0x7e;
const LINE_ENDS: readonly number[] = [0x0d, 0x0a];
const COMMANDS: Readonly<Record<number, "leave" | "help">> = { 46: "leave", 63: "help" };

export interface Typed {
  /** For the sandbox. */
  bytes: Uint8Array;
  command: "leave" | "help" | null;
}

export class KeyReader {
  #atLineStart = true;
  #afterTilde = false;

  /** Reads the input up to the first command; the rest of the same chunk after a command is dropped. */
  read(typed: Uint8Array): Typed {
    const bytes: number[] = [];
    for (const byte of typed) {
      if (this.#afterTilde) {
        this.#afterTilde = false;
        const command = COMMANDS[byte];
        this.#atLineStart = command !== undefined;
        if (command) return { bytes: Uint8Array.from(bytes), command };
        // `~~` sends a single ~; before any other character the ~ is sent as well.
        bytes.push(TILDE);
        if (byte === TILDE) continue;
      } else if (this.#atLineStart && byte === TILDE) {
        this.#afterTilde = true;
        continue;
      }
      bytes.push(byte);
      this.#atLineStart = LINE_ENDS.includes(byte);
    }
    return { bytes: Uint8Array.from(bytes), command: null };
  }
}
