/**
 * The drawn terminal. Watched output can only draw: links are inactive, titles and the clipboard are not changed, and a terminal's replies
 * are discarded unless the user types.
 */
import { FitAddon } from "@xterm/addon-fit";
import { Terminal } from "@xterm/xterm";
import xtermStyle from "@xterm/xterm/css/xterm.css" with { type: "text" };
import { addStyle } from "../../components/style.ts";
import { boot } from "../../shell/boot.ts";
import { allowStyles } from "./styles.ts";

addStyle(xtermStyle);

const SCROLLBACK_LINES = 5000;
const SHARE_OF_WINDOW = 0.6;
const MIN_ROWS = 5;
const MIN_COLS = 20;
/** Dark in both themes of the page: programs choose their colours for a dark background. */
const THEME = { background: "#131416", foreground: "#e9e7e3", cursor: "#8fa8ff", selectionBackground: "#3c4a7a" };

export class Screen {
  readonly #terminal: Terminal;
  readonly #fit = new FitAddon();

  constructor(place: HTMLElement, { rows, cols }: { rows: number; cols: number }) {
    allowStyles(boot.style_nonce);
    this.#terminal = new Terminal({
      rows,
      cols,
      disableStdin: true,
      scrollback: SCROLLBACK_LINES,
      theme: THEME,
      fontFamily: '"JetBrains Mono", "DejaVu Sans Mono", monospace',
      fontSize: 13,
      minimumContrastRatio: 4.5,
      linkHandler: { activate: () => {} },
      logLevel: "off",
    });
    this.#terminal.loadAddon(this.#fit);
    this.#terminal.open(place);
  }

  /** Resolves once the bytes are drawn, so that output does not arrive faster than it can be drawn. */
  write(bytes: Uint8Array): Promise<void> {
    return new Promise((resolve) => this.#terminal.write(bytes, resolve));
  }

  resize(rows: number, cols: number): void {
    this.#terminal.resize(cols, rows);
  }

  /** The size at which the terminal fills its container's width, and the usual part of the window's height. */
  sizeHere(): { rows: number; cols: number } | null {
    const proposed = this.#fit.proposeDimensions();
    const height = this.#terminal.element?.clientHeight;
    if (!proposed || !height) return null;
    const rows = Math.floor((innerHeight * SHARE_OF_WINDOW) / (height / this.#terminal.rows));
    return { rows: Math.max(MIN_ROWS, rows), cols: Math.max(MIN_COLS, proposed.cols) };
  }

  /** After missing output, the drawn contents are invalid. */
  reset(): void {
    this.#terminal.reset();
  }

  /** From now on typed text and the terminal's replies go to `send`. Returns a function that stops it. */
  type(send: (bytes: Uint8Array<ArrayBuffer>) => void): () => void {
    const encoder = new TextEncoder();
    const typed = this.#terminal.onData((text) => send(encoder.encode(text)));
    const pressed = this.#terminal.onBinary((text) => send(Uint8Array.from(text, (each) => each.charCodeAt(0))));
    this.#terminal.options.disableStdin = false;
    this.#terminal.focus();
    return () => {
      this.#terminal.options.disableStdin = true;
      typed.dispose();
      pressed.dispose();
    };
  }

  close(): void {
    this.#terminal.dispose();
  }
}
