/** Splitter of byte chunks into lines: output of programs, here and in guests. */

const MAX_CHARACTERS = 4096;

/** A line ends with LF, CR or both; of a line without an end the last MAX_CHARACTERS are kept, and empty lines are skipped. */
export class Lines {
  readonly #onLine: (line: string) => void;
  readonly #decoder = new TextDecoder();
  #rest = "";

  constructor(onLine: (line: string) => void) {
    this.#onLine = onLine;
  }

  push(bytes: Uint8Array): void {
    const [first = "", ...more] = this.#decoder.decode(bytes, { stream: true }).split(/[\r\n]/);
    this.#add(first);
    for (const next of more) {
      this.#tell();
      this.#add(next);
    }
  }

  /** Emits the rest without a line end as a line too. */
  end(): void {
    this.#add(this.#decoder.decode());
    this.#tell();
  }

  #add(text: string): void {
    this.#rest = (this.#rest + text).slice(-MAX_CHARACTERS);
  }

  #tell(): void {
    if (this.#rest !== "") this.#onLine(this.#rest);
    this.#rest = "";
  }
}
