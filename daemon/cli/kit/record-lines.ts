/**
 * A record of the service as text: aligned, with units, times as ages, and larger objects as sections. Units are derived from field names
 * of the API (`drive_write_bytes_max`, `idle_after_seconds`). `--json` prints the record itself.
 */
import { bytesText, type Cell, paint, paintState, printable, table } from "./output.ts";
import { ago } from "./relative-time.ts";
import { textWidth } from "./text-width.ts";

/** A unit within a field name, and the format of its values. */
const UNIT = /_(bytes|mib|gib|seconds|ms|percent)(?=_|$)/;
const WRITTEN: Record<string, (value: number) => string> = {
  bytes: bytesText,
  mib: (value) => bytesText(value * 1024 ** 2),
  gib: (value) => bytesText(value * 1024 ** 3),
  seconds: (value) => durationText(value * 1000),
  ms: durationText,
  percent: (value) => `${value} %`,
};
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d+)?Z$/;
/** Fields with keys that the caller chose. */
const PAIRS: ReadonlySet<string> = new Set(["labels", "env", "metadata", "headers"]);
const INDENT = "  ";
/** Maximum number of fields of a nested object on one line; a larger object is a section. */
const MAX_INLINE = 4;
/** Narrower text is not wrapped. */
const MIN_WRAP = 20;

interface Row {
  label: string;
  text: string;
}

/** The lines of a record. `show` prints `warnings`. */
export function recordLines(value: object): string[] {
  const { warnings: _, ...fields } = value as Record<string, unknown>;
  const entries = Object.entries(fields);
  const rows = entries.flatMap(([name, inner]) => rowOf(name, inner) ?? []);
  const sections = entries.flatMap(([name, inner]) => (rowOf(name, inner) === null ? [[name, inner] as const] : []));
  return [...aligned(rows), ...sections.flatMap(([name, inner]) => sectionLines(labelOf(name), inner))];
}

/** Labels in one column, and texts in a second that is wrapped to the terminal's width. */
export function aligned(rows: readonly Row[], indent = ""): string[] {
  const width = Math.max(0, ...rows.map(({ label }) => textWidth(label)));
  const room = terminalWidth() - indent.length - width - 2;
  return rows.flatMap(({ label, text }) => {
    const [first = "", ...others] = wrapped(text, room);
    const name = paint("dim", label) + " ".repeat(width - textWidth(label));
    return [
      `${indent}${name}  ${paintState(first)}`,
      ...others.map((line) => `${indent}${" ".repeat(width)}  ${line}`),
    ];
  });
}

/** Infinite if the output is not a terminal: lines for programs are not wrapped. */
export function terminalWidth(): number {
  return process.stdout.isTTY ? process.stdout.columns || 80 : Number.POSITIVE_INFINITY;
}

/** Wraps text at spaces. */
export function wrapped(text: string, width = terminalWidth()): string[] {
  if (textWidth(text) <= width || width < MIN_WRAP) return [text];
  const lines: string[] = [];
  for (const word of text.split(" ")) {
    const last = lines.at(-1);
    if (last !== undefined && textWidth(last) + 1 + textWidth(word) <= width)
      lines[lines.length - 1] = `${last} ${word}`;
    else lines.push(word);
  }
  return lines;
}

/** Duration as text: `3 min`, `2 h 5 min`, `420 ms`. */
export function durationText(ms: number): string {
  if (ms < 1000) return `${Math.round(ms)} ms`;
  if (ms < 60_000) return `${Number((ms / 1000).toFixed(1))} s`;
  const units = [
    ["d", 86_400_000],
    ["h", 3_600_000],
    ["min", 60_000],
    ["s", 1000],
  ] as const;
  const at = units.findIndex(([, length]) => ms >= length);
  const [[name, length] = ["s", 1000], next] = units.slice(at, at + 2);
  const rest = next ? Math.floor((ms % length) / next[1]) : 0;
  return `${Math.floor(ms / length)} ${name}${next && rest > 0 ? ` ${rest} ${next[0]}` : ""}`;
}

/** The field name as words, without its unit. */
function labelOf(name: string): string {
  return printable(name.replace(UNIT, "").replace(/_at$/, "").replaceAll("_", " ").trim() || name);
}

/** Null for a value that gets a separate section. */
function rowOf(name: string, value: unknown): Row | null {
  const text = textOf(name, value);
  return text === null ? null : { label: labelOf(name), text };
}

function textOf(name: string, value: unknown): string | null {
  if (value === null || value === undefined || value === "") return "-";
  if (typeof value === "boolean") return value ? "yes" : "no";
  if (typeof value === "number") return WRITTEN[UNIT.exec(name)?.[1] ?? ""]?.(value) ?? String(value);
  if (typeof value === "string") return TIME.test(value) ? timeText(value) : printable(value);
  if (Array.isArray(value)) {
    if (value.length === 0) return "none";
    return value.some((item) => typeof item === "object" && item !== null)
      ? null
      : value.map((item) => textOf(name, item)).join(", ");
  }
  const pairs = Object.entries(value);
  if (pairs.length === 0) return "-";
  if (PAIRS.has(name)) return pairs.map(([key, inner]) => printable(`${key}=${inner}`)).join(", ");
  return pairs.length > MAX_INLINE ? null : inlineText(pairs);
}

/** A small object on one line, without null fields; null if it contains larger values. */
function inlineText(pairs: readonly (readonly [string, unknown])[]): string | null {
  const rows = pairs.map(([name, inner]) => (isPlain(inner) ? rowOf(name, inner) : null));
  if (rows.includes(null)) return null;
  return rows.flatMap((row) => (row && row.text !== "-" ? [`${row.label} ${row.text}`] : [])).join(" · ") || "-";
}

const isPlain = (value: unknown): boolean => typeof value !== "object" || value === null || Array.isArray(value);

/** Time as text: `3 min ago (2026-11-29 11:50:38 UTC)`. */
function timeText(at: string): string {
  return `${ago(at)} (${at.slice(0, 19).replace("T", " ")} UTC)`;
}

function sectionLines(heading: string, value: unknown): string[] {
  const lines = Array.isArray(value) ? listLines(value) : aligned([...flat(value as object, "")], INDENT);
  return ["", paint("bold", heading), ...lines];
}

/** Rows of a nested object; fields deeper than a section are labelled with their path. */
function* flat(value: object, path: string): Generator<Row> {
  for (const [name, inner] of Object.entries(value)) {
    const row = rowOf(name, inner);
    if (row) yield { label: path + row.label, text: row.text };
    else if (Array.isArray(inner)) yield { label: path + labelOf(name), text: printable(JSON.stringify(inner)) };
    else yield* flat(inner as object, `${path}${labelOf(name)} `);
  }
}

/** Objects as a table, with the columns of all of them. */
function listLines(items: readonly unknown[]): string[] {
  const objects = items.filter((item): item is Record<string, unknown> => typeof item === "object" && item !== null);
  const columns = [...new Set(objects.flatMap((item) => Object.keys(item)))];
  const cell = (name: string, value: unknown): Cell => textOf(name, value) ?? JSON.stringify(value);
  return table(
    columns.map((name) => labelOf(name).toUpperCase()),
    objects.map((item) => columns.map((name) => cell(name, item[name]))),
  ).map((line) => INDENT + line);
}
