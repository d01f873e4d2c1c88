/** The screen of `roomd top`: lines for a screen of this size, none longer than it is wide. */
import { paint } from "../../kit/output.ts";
import {
  cut,
  durationText,
  type Sort,
  shortBytes,
  sorted,
  type TableCell,
  type TopRow,
  tableOf,
} from "./top-columns.ts";
import type { TopRates } from "./top-rates.ts";

export interface TopView {
  rates: TopRates | null;
  sort: Sort;
  /** Number of rows scrolled out above the screen. */
  scroll: number;
  /** Only rows with this text in the room or agent. */
  filter: string;
  /** Whether the user is typing the filter. */
  isTyping: boolean;
  /** A message, for example that the service does not answer. */
  notice: string | null;
}

type Style = Parameters<typeof paint>[0];

/** The first that fits. */
const KEYS = [
  "q quit  c CPU  m memory  d disk  n network  a agent  / filter  ↑↓ scroll",
  "q quit  c m d n a sort  / filter",
  "q quit",
];
const BAR = 10;
const SEPARATOR = "   ";
const HIGH = { yellow: 70, red: 90 } as const;

/** Number of rows for sandboxes on a screen of this size. */
export function roomFor(view: TopView, rows: number, cols: number): number {
  // Reserves the table's header and the line of keys.
  return Math.max(1, rows - headerOf(view.rates, cols).length - 2);
}

export function rowsOf({ rates, filter, sort }: Pick<TopView, "rates" | "filter" | "sort">): TopRow[] {
  const has = ({ room_id, agent_id }: TopRow) => `${room_id}/${agent_id}`.toLowerCase().includes(filter.toLowerCase());
  return sorted(rates?.items.filter(has) ?? [], sort);
}

export function screenOf(view: TopView, rows: number, cols: number): string[] {
  const header = headerOf(view.rates, cols);
  const all = rowsOf(view);
  const page = roomFor(view, rows, cols);
  const from = Math.min(view.scroll, Math.max(0, all.length - page));
  const table = tableLines(all, view, cols);
  const filled = [...header, table[0] ?? "", ...table.slice(from + 1, from + 1 + page)];
  const empty = Array<string>(Math.max(0, rows - filled.length - 1)).fill("");
  const position = all.length > page ? `${from + 1}-${from + page} of ${all.length}  ` : "";
  return [...filled, ...empty].slice(0, Math.max(0, rows - 1)).concat(footerOf(view, position, cols));
}

/** The whole content, once, for output that is no terminal. */
export function pageOf(rates: TopRates, sort: Sort): string[] {
  const view: TopView = { rates, sort, scroll: 0, filter: "", isTyping: false, notice: null };
  const cols = process.stdout.columns || 200;
  return [...headerOf(rates, cols), ...tableLines(rowsOf(view), view, cols)].map((line) => line.trimEnd());
}

function tableLines(rows: readonly TopRow[], { sort, rates }: Pick<TopView, "sort" | "rates">, cols: number): string[] {
  const [headers = [], ...cells] = tableOf(rows, sort, cols, Date.parse(rates?.at ?? ""));
  const body = cells.map((line, at) => line.map((cell) => paintCell(cell, rows[at])).join(""));
  return [headers.map(({ text }) => paint("bold", text)).join(""), ...body];
}

const STATES: Record<string, Style> = { running: "green", failed: "red", paused: "dim", destroying: "dim" };

function paintCell({ header, text }: TableCell, row: TopRow | undefined): string {
  if (!row) return text;
  if (header.startsWith("STATE")) return paint(STATES[row.state] ?? "yellow", text);
  if (header.startsWith("CPU")) return paintHigh(text, (row.rates.cpu_percent ?? 0) / row.cpu.vcpu_count);
  if (header.startsWith("MEMORY")) {
    return paintHigh(text, ((row.memory.resident_bytes ?? 0) / row.memory.memory_mib / 1024 ** 2) * 100);
  }
  return text.trim() === "-" || text.trim() === "0" ? paint("dim", text) : text;
}

function paintHigh(text: string, percent: number): string {
  if (percent >= HIGH.red) return paint("red", text);
  return percent >= HIGH.yellow ? paint("yellow", text) : text;
}

/** One part of the header: plain, to measure its width, and as shown. */
interface HeaderPart {
  plain: string;
  shown: string;
}

const part = (plain: string, shown = plain): HeaderPart => ({ plain, shown });

function headerOf(rates: TopRates | null, cols: number): string[] {
  if (rates === null) return flow([part("roomd top")], cols);
  const { items, host } = rates;
  const states = host?.sandboxes ?? countStates(items);
  const all = Object.values(states).reduce((sum, count) => sum + count, 0);
  const nonzero = Object.entries(states).filter(([, count]) => count > 0);
  const breakdown = nonzero.length > 0 ? ` (${nonzero.map(([state, count]) => `${count} ${state}`).join(", ")})` : "";
  const sandboxes = part(`${all} ${all === 1 ? "sandbox" : "sandboxes"}${breakdown}`);
  const rooms = host?.rooms ?? new Set(items.map(({ room_id }) => room_id)).size;
  const first = [
    part("roomd", paint("bold", "roomd")),
    ...(host ? [part(`up ${durationText(host.uptime_seconds)}`)] : []),
    part(`${rooms} ${rooms === 1 ? "room" : "rooms"}`),
    sandboxes,
    ...(host ? [part(`${requestsText(host.rates.requests_per_second)} requests/s`)] : []),
  ];
  const loop = host && host.rates.loop_percent !== null ? flow(loopOf(host), cols) : [];
  return [...flow(first, cols), ...flow(host ? gaugesOf(host) : sumsOf(items), cols), ...loop];
}

const MAX_OWNERS = 4;
const OWNERS: Record<string, string> = { net: "without a key", host: "roomd" };

/** The service's event loop: load, owners, and the longest uninterrupted piece of work. */
function loopOf({ loop, rates }: NonNullable<TopRates["host"]>): HeaderPart[] {
  const owners = rates.loop_owners.slice(0, MAX_OWNERS);
  const { longest } = loop;
  return [
    gauge("loop", rates.loop_percent ?? 0, `${(rates.loop_percent ?? 0).toFixed(1)}%`),
    ...owners.map(({ owner, percent }) =>
      part(`${OWNERS[owner] ?? owner.replace(/^org:/, "")} ${percent.toFixed(1)}%`),
    ),
    ...(longest ? [part(`longest ${longest.ms.toFixed(1)} ms (${longest.label})`)] : []),
  ];
}

function gaugesOf({ cpu, memory, disk, rates }: NonNullable<TopRates["host"]>): HeaderPart[] {
  const used = memory.size_bytes - memory.available_bytes;
  const full = disk.size_bytes - disk.free_bytes;
  const cores = `${cpu.cores} ${cpu.cores === 1 ? "core" : "cores"}`;
  const cpuText = rates.cpu_percent === null ? `of ${cores}` : `${rates.cpu_percent.toFixed(1)}% of ${cores}`;
  return [
    gauge("CPU", rates.cpu_percent ?? 0, cpuText),
    gauge("memory", (used / memory.size_bytes) * 100, `${shortBytes(used)} of ${shortBytes(memory.size_bytes)}`),
    gauge("disk", (full / disk.size_bytes) * 100, `${shortBytes(disk.free_bytes)} free`),
    part(`sandboxes: ${shortBytes(memory.promised_bytes)} promised, ${shortBytes(memory.resident_bytes)} used`),
  ];
}

function gauge(label: string, percent: number, text: string): HeaderPart {
  const filled = Math.min(BAR, Math.max(0, Math.round((percent / 100) * BAR)));
  const bar = "|".repeat(filled);
  const rest = " ".repeat(BAR - filled);
  const style = percent >= HIGH.red ? "red" : percent >= HIGH.yellow ? "yellow" : "green";
  return part(`${label} [${bar}${rest}] ${text}`, `${label} [${paint(style, bar)}${rest}] ${text}`);
}

function sumsOf(items: readonly TopRow[]): HeaderPart[] {
  const sum = (of: (row: TopRow) => number | null) => items.reduce((total, row) => total + (of(row) ?? 0), 0);
  return [
    part(`CPU ${sum(({ rates }) => rates.cpu_percent).toFixed(1)}%`),
    part(`memory ${shortBytes(sum(({ memory }) => memory.resident_bytes))}`),
    part(`disks ${shortBytes(sum(({ disk }) => disk.used_bytes))}`),
  ];
}

const requestsText = (perSecond: number | null) => (perSecond === null ? "-" : perSecond.toFixed(1));

function countStates(items: readonly TopRow[]): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const { state } of items) counts[state] = (counts[state] ?? 0) + 1;
  return counts;
}

/** Places parts side by side, on as many lines as necessary. */
function flow(parts: readonly HeaderPart[], cols: number): string[] {
  const lines: HeaderPart[] = [];
  for (const next of parts) {
    const last = lines.at(-1);
    if (last && last.plain.length + SEPARATOR.length + next.plain.length <= cols) {
      last.plain += SEPARATOR + next.plain;
      last.shown += SEPARATOR + next.shown;
    } else {
      lines.push({ ...next });
    }
  }
  return lines.map(({ plain, shown }) => (plain.length <= cols ? shown : cut(plain, cols)));
}

function footerOf({ filter, isTyping, notice, rates }: TopView, position: string, cols: number): string {
  if (isTyping) return cut(`filter: ${filter}_`, cols);
  if (notice !== null) return paint("yellow", cut(notice, cols));
  const only = filter === "" ? "" : `only ${filter}  `;
  const beyond = rates && rates.not_shown > 0 ? `${rates.not_shown} more are not shown  ` : "";
  const status = `${only}${position}${beyond}`;
  const keys = KEYS.find((each) => status.length + each.length <= cols) ?? "";
  return paint("dim", cut(status + keys, cols));
}
