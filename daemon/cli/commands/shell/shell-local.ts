/**
 * The local terminal during `roomd shell` and `roomd top`: raw while they run, and restored on every exit path: normal exit, error or
 * signal.
 */
import { constants } from "node:os";
import { makeRaw } from "../../../host/terminal-mode.ts";
import { EXIT } from "../../kit/cli-error.ts";

const DEADLY = ["SIGTERM", "SIGHUP", "SIGINT", "SIGQUIT"] as const;
const ALTERNATE_SCREEN = { on: "\x1b[?1049h", off: "\x1b[?1049l" };
/** Colours, cursor, keypad, mouse, paste: modes that an interrupted program has not reset. */
const AS_USUAL = "\x1b[0m\x1b[?25h\x1b[?1l\x1b>\x1b[?1000l\x1b[?1002l\x1b[?1003l\x1b[?1006l\x1b[?2004l";
const MAX_WAITING_BYTES = 256 * 1024;

export class LocalTerminal {
  #restore: (() => void) | null = null;
  #isCutOff = false;
  #isAlternate = false;
  #waiting = 0;

  /** The current rows and columns, within the interface's limits. */
  get size(): { rows: number; cols: number } {
    const [cols, rows] = process.stdout.getWindowSize();
    const within = (value: number, usual: number) => Math.min(Math.max(value || usual, 1), 1000);
    return { rows: within(rows, 24), cols: within(cols, 80) };
  }

  /** From now on `onKeys` receives every key. */
  open(onKeys: (typed: Uint8Array) => void, onResize: () => void): void {
    process.on("exit", () => this.close());
    for (const signal of DEADLY) {
      process.on(signal, () => {
        this.#isCutOff = true;
        process.exit(EXIT.signal + constants.signals[signal]);
      });
    }
    process.on("SIGWINCH", onResize);
    this.#restore = makeRaw(process.stdin.fd);
    process.stdin.on("data", onKeys);
    process.stdin.resume();
  }

  /** Restores the terminal's state. A second call does nothing. */
  close(): void {
    if (!this.#restore) return;
    process.stdin.pause();
    if (this.#isCutOff) process.stdout.write((this.#isAlternate ? ALTERNATE_SCREEN.off : "") + AS_USUAL);
    this.#restore();
    this.#restore = null;
  }

  /** The program that drew the screen keeps running elsewhere, and does not restore it. */
  cutOff(): void {
    this.#isCutOff = true;
  }

  /** Shows output of the sandbox's terminal. `onFull` is called when too much output is pending, `onReady` once it has drained. */
  show(bytes: Uint8Array, onFull: () => void, onReady: () => void): void {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength);
    const [on, off] = [text.lastIndexOf(ALTERNATE_SCREEN.on), text.lastIndexOf(ALTERNATE_SCREEN.off)];
    if (on !== off) this.#isAlternate = on > off;
    const wasFull = this.#waiting > MAX_WAITING_BYTES;
    this.#waiting += bytes.byteLength;
    if (!wasFull && this.#waiting > MAX_WAITING_BYTES) onFull();
    process.stdout.write(bytes, () => {
      const isFull = this.#waiting > MAX_WAITING_BYTES;
      this.#waiting -= bytes.byteLength;
      if (isFull && this.#waiting <= MAX_WAITING_BYTES) onReady();
    });
  }

  /** A message of the client between the sandbox's output. */
  note(text: string): void {
    process.stdout.write(`\r\nroomd: ${text}\r\n`);
  }

  /** Resolves once all output has been written. */
  flush(): Promise<void> {
    return new Promise((resolve) => void process.stdout.write("", () => resolve()));
  }
}
