/** The columns of `roomd top`: content, sort order, and the selection that fits a width. */
import type { TopRates } from "./top-rates.ts";

export type TopRow = TopRates["items"][number];

export const SORTS = ["cpu", "memory", "disk", "network", "agent"] as const;
export type Sort = (typeof SORTS)[number];

interface Column {
  header: string;
  sort?: Sort;
  /** Whether the column contains names, which may be truncated. */
  isName?: true;
  /** Columns with the lowest value are omitted first. */
  worth: number;
  cell(row: TopRow, nowMs: number): string;
}

const COLUMNS: readonly Column[] = [
  { header: "ROOM", isName: true, worth: 7, cell: ({ room_id }) => room_id },
  { header: "AGENT", sort: "agent", isName: true, worth: 9, cell: ({ agent_id }) => agent_id },
  { header: "STATE", worth: 8, cell: ({ state }) => state },
  {
    header: "CPU%",
    sort: "cpu",
    worth: 9,
    cell: ({ rates }) => amount(rates.cpu_percent, (value) => value.toFixed(1)),
  },
  { header: "MEMORY", sort: "memory", worth: 9, cell: ({ memory }) => memoryText(memory) },
  { header: "DISK", sort: "disk", worth: 6, cell: ({ disk }) => shortBytes(disk.used_bytes) },
  { header: "OUT/s", sort: "network", worth: 5, cell: ({ rates }) => amount(rates.sent_bytes_per_second, shortBytes) },
  { header: "IN/s", worth: 5, cell: ({ rates }) => amount(rates.received_bytes_per_second, shortBytes) },
  { header: "UP", worth: 4, cell: ({ ready_at }, nowMs) => upText(ready_at, nowMs) },
];

const KEYS: Record<Exclude<Sort, "agent">, (row: TopRow) => number | null> = {
  cpu: ({ rates }) => rates.cpu_percent,
  memory: ({ memory }) => memory.resident_bytes,
  disk: ({ disk }) => disk.used_bytes,
  network: ({ rates }) =>
    rates.sent_bytes_per_second === null ? null : rates.sent_bytes_per_second + (rates.received_bytes_per_second ?? 0),
};

/** Sorts rows, the largest first; equal values by name, so that rows do not jump. */
export function sorted(rows: readonly TopRow[], by: Sort): TopRow[] {
  const name = ({ room_id, agent_id, sandbox_id }: TopRow) => `${room_id}\n${agent_id}\n${sandbox_id}`;
  const key = by === "agent" ? () => 0 : KEYS[by];
  return rows.toSorted((one, other) => {
    const order = (key(other) ?? -1) - (key(one) ?? -1);
    return order !== 0 ? order : name(one) < name(other) ? -1 : 1;
  });
}

const GAP = 2;
const LEAST_NAME = 10;
const MAX_NAME = 40;

export interface TableCell {
  header: string;
  text: string;
}

/** The lines of a table within `cols` characters: first the headers, with a mark at the sort column. */
export function tableOf(rows: readonly TopRow[], by: Sort, cols: number, nowMs: number): TableCell[][] {
  const full = COLUMNS.map((column) => {
    const header = column.sort === by ? `${column.header}▾` : column.header;
    const cells = [header, ...rows.map((row) => column.cell(row, nowMs))];
    const widest = Math.max(...cells.map((text) => text.length));
    const natural = column.isName ? Math.min(widest, MAX_NAME) : widest;
    return { ...column, cells, natural, least: column.isName ? Math.min(natural, LEAST_NAME) : natural };
  });
  let shown = full;
  const room = () => cols - shown.reduce((sum, { least }) => sum + least, (shown.length - 1) * GAP);
  while (room() < 0 && shown.length > 1) {
    const worst = Math.min(...shown.map(({ worth }) => worth));
    shown = shown.filter(({ worth }) => worth !== worst);
  }
  // Names share the remaining width, each as far as it needs it.
  let spare = Math.max(0, room());
  const widths = new Map(shown.map(({ header, least }) => [header, Math.min(least, cols)]));
  const names = shown.filter(({ isName }) => isName);
  for (const [at, { header, least, natural }] of names.entries()) {
    const more = Math.min(natural - least, Math.max(Math.ceil(spare / (names.length - at)), spare - restOf(names, at)));
    widths.set(header, least + more);
    spare -= more;
  }
  const lines = [...rows.keys(), rows.length].map((line) =>
    shown.map(({ header, cells, isName }, at) => {
      const width = widths.get(header) ?? 0;
      const text = cut(cells[line] ?? "", width);
      const isLeft = isName || header === "STATE";
      const end = at === shown.length - 1 ? "" : " ".repeat(GAP);
      return { header, text: (isLeft ? text.padEnd(width) : text.padStart(width)) + end };
    }),
  );
  return lines;
}

/** The extra width that the names after this one could use. */
function restOf(names: readonly { natural: number; least: number }[], at: number): number {
  return names.slice(at + 1).reduce((sum, { natural, least }) => sum + natural - least, 0);
}

export function cut(text: string, width: number): string {
  return text.length <= width ? text : `${text.slice(0, Math.max(0, width - 1))}…`;
}

const amount = (value: number | null, text: (value: number) => string) => (value === null ? "-" : text(value));

function memoryText({ memory_mib, resident_bytes }: TopRow["memory"]): string {
  return `${amount(resident_bytes, shortBytes)}/${shortBytes(memory_mib * 1024 ** 2)}`;
}

/** In at most five characters. */
export function shortBytes(bytes: number): string {
  const units = ["", "K", "M", "G", "T", "P"];
  const step = bytes < 1 ? 0 : Math.min(units.length - 1, Math.floor(Math.log2(bytes) / 10));
  const value = bytes / 1024 ** step;
  const digits = step === 0 || value >= 100 || Number.isInteger(value) ? 0 : 1;
  return `${value.toFixed(digits)}${units[step]}`;
}

function upText(since: string | null, nowMs: number): string {
  return since === null ? "-" : durationText(Math.max(0, Math.floor((nowMs - Date.parse(since)) / 1000)));
}

/** The two largest units. */
export function durationText(seconds: number): string {
  const parts = [
    [Math.floor(seconds / 86_400), "d"],
    [Math.floor(seconds / 3600) % 24, "h"],
    [Math.floor(seconds / 60) % 60, "m"],
    [seconds % 60, "s"],
  ] as const;
  const first = parts.findIndex(([count]) => count > 0);
  if (first === -1) return "0s";
  return parts
    .slice(first, first + 2)
    .map(([count, unit]) => `${count}${unit}`)
    .join("");
}
