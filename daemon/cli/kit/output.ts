/**
 * Output: tables and fields for people, JSON for programs, progress for interactive users.
 * Results go to standard output, everything else to standard error. Colours only on a terminal, never with NO_COLOR.
 */
import { styleText } from "node:util";
import { plainJson } from "../../core/text.ts";
import type { CliError } from "./cli-error.ts";
import { ago } from "./relative-time.ts";
import { textWidth } from "./text-width.ts";

/** The --json option of every command. */
export interface JsonOption {
  json?: boolean | undefined;
}

type Style = "bold" | "dim" | "red" | "green" | "yellow";
type Stream = NodeJS.WriteStream;

/** Resolves when the stream has written the data, so that none is lost when the process ends. */
export function write(stream: Stream, data: string | Uint8Array): Promise<void> {
  return new Promise((resolve, reject) => {
    stream.write(data, (error) => (error ? reject(error) : resolve()));
  });
}

let whenBroken = () => process.exit(0);

/** Calls the handler for an output without a reader. The default ends the process: a reader may close early. */
export function outputBroke(): void {
  whenBroken();
}

/** Sets the handler of a broken output; the returned function restores the previous handler. */
export function onBrokenOutput(handle: () => void): () => void {
  const before = whenBroken;
  whenBroken = handle as () => never;
  return () => {
    whenBroken = before;
  };
}

export function print(...lines: string[]): Promise<void> {
  return lines.length === 0 ? Promise.resolve() : write(process.stdout, `${lines.join("\n")}\n`);
}

export function say(...lines: string[]): Promise<void> {
  return write(process.stderr, `${lines.join("\n")}\n`);
}

/** Prints the service's JSON unchanged, or the lines of `human`, and its warnings on standard error. */
export async function show<T>(reply: { value: T; text: string }, options: JsonOption, human: (value: T) => string[]) {
  if (options.json) return await print(plainJson(reply.text.trimEnd()));
  await print(...human(reply.value));
  const warnings = warningsIn(reply.value);
  if (warnings.length > 0) await say(...warnings.map((warning) => printable(warning)));
}

function warningsIn(value: unknown): string[] {
  const { warnings } = (value ?? {}) as { warnings?: unknown };
  return Array.isArray(warnings) ? warnings.filter((each) => typeof each === "string") : [];
}

/** The same for results of the host's own commands. */
export function showValue<T>(value: T, options: JsonOption, human: (value: T) => string[]): Promise<void> {
  return show({ value, text: JSON.stringify(value) }, options, human);
}

export function showError(error: CliError, json: boolean): Promise<void> {
  if (json) return say(plainJson(JSON.stringify(error.problem)));
  // A host program's output in the error may have several lines.
  const [first = "", ...rest] = error.lines.flatMap((line) => line.split("\n")).map(printable);
  return say(`${paint("red", "roomd:", process.stderr)} ${first}`, ...rest);
}

/** A table with headers and minimal column widths; timestamps are shown as ages, except in columns of records. */
export function table(headers: readonly string[], rows: readonly (readonly Cell[])[]): string[] {
  const now = Date.now();
  const textOf = (cell: Cell, column: number) =>
    cellText(EXACT.has(headers[column] ?? "") ? cell : sinceText(cell, now));
  const cells = rows.map((row) => row.map(textOf));
  const widths = headers.map((header, column) =>
    Math.max(header.length, ...cells.map((row) => textWidth(row[column] ?? ""))),
  );
  const line = (row: readonly string[], style: (text: string) => string) =>
    row
      .map((text, column) => style(text) + " ".repeat(Math.max(0, (widths[column] ?? 0) - textWidth(text))))
      .join("  ")
      .trimEnd();
  return [line(headers, (text) => paint("bold", text)), ...cells.map((row) => line(row, paintState))];
}

/** One field per line; nested names are joined with dots. `show` prints the warnings. */
export function fieldLines(value: object): string[] {
  const entries = [...flatten(value, "")].filter(([name]) => name !== "warnings");
  const width = Math.max(0, ...entries.map(([name]) => name.length));
  return entries.map(([name, text]) => `${paint("dim", name.padEnd(width))}  ${paintState(text)}`);
}

/** Hint for reading the rest of a truncated list. */
export function moreLines(next: string | null): string[] {
  return next === null ? [] : [paint("dim", `more with --cursor ${next}`)];
}

export function counted(count: number, one: string, several = `${one}s`): string {
  return `${count} ${count === 1 ? one : several}`;
}

export function bytesText(bytes: number): string {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const amount = bytes / 1024 ** step;
  return `${step === 0 || amount >= 100 ? Math.round(amount) : amount.toFixed(1)} ${units[step]}`;
}

/** Escapes control characters and bidirectional controls: names and logs come from guests and must not control the reader's terminal. */
export function printable(text: string): string {
  // biome-ignore lint/suspicious/noControlCharactersInRegex: these are what it is about
  return text.replace(/[\u0000-\u0008\u000a-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/g, (c) => {
    const code = c.charCodeAt(0);
    return code > 0xff ? `\\u{${code.toString(16)}}` : `\\x${code.toString(16).padStart(2, "0")}`;
  });
}

export function paint(style: Style, text: string, stream: Stream = process.stdout): string {
  return styleText(style, text, { stream });
}

export type Cell = string | number | null;

/** Columns of records: exact times matter here. */
const EXACT = new Set(["AT", "UNTIL"]);
const TIMESTAMP = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z$/;

const sinceText = (cell: Cell, now: number): Cell =>
  typeof cell === "string" && TIMESTAMP.test(cell) ? ago(cell, now) : cell;

function cellText(cell: Cell): string {
  return cell === null || cell === "" ? "-" : printable(String(cell));
}

const STATE_STYLES: Record<string, Style> = {
  running: "green",
  active: "green",
  ok: "green",
  success: "green",
  failed: "red",
  fail: "red",
  error: "red",
  denied: "yellow",
  warn: "yellow",
};

export function paintState(text: string): string {
  const style = STATE_STYLES[text];
  return style ? paint(style, text) : text;
}

function* flatten(value: object, prefix: string): Generator<[string, string]> {
  for (const [name, inner] of Object.entries(value)) {
    if (Array.isArray(inner)) yield [`${prefix}${name}`, cellText(inner.map((item) => plain(item)).join(", "))];
    else if (typeof inner === "object" && inner !== null) yield* flatten(inner, `${prefix}${name}.`);
    else yield [`${prefix}${name}`, cellText(inner)];
  }
}

function plain(item: unknown): string {
  return typeof item === "object" ? JSON.stringify(item) : String(item);
}
