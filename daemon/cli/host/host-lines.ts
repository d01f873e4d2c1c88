/** The hosts of a service for a terminal: a table of 80 columns, and below it advice for each host. */
import type { OutputOf } from "../../../shared/api/contract.ts";
import type { hostList } from "../../../shared/api/hosts.ts";
import { adviceFor, DIRECTORY_STALE_SECONDS, type ListedHost } from "../../../shared/host-advice.ts";
import { shellLine } from "../../../shared/shell.ts";
import { durationText } from "../commands/top/top-columns.ts";
import { bytesText, paint, printable, table } from "../kit/output.ts";
import { textWidth } from "../kit/text-width.ts";

const HEADERS = ["HOST", "STATE", "SINCE", "ROOMS", "MEMORY", "DISK FREE", "VERSION"];
const MIB = 1024 ** 2;

/** `cols`: width of the terminal; the address gets a column if it fits, and always if `cols` is absent. */
export function hostLines(
  { items, directory_age_seconds: age }: OutputOf<typeof hostList>,
  nowMs: number,
  cols = Number.POSITIVE_INFINITY,
): string[] {
  const hosts = items.filter(({ state }) => state !== "gone");
  const rows = hosts.map((each) => rowOf(each, nowMs));
  const wide = table(
    [...HEADERS, "URL"],
    rows.map((row, n) => [...row, hosts[n]?.url ?? ""]),
  );
  const fits = wide.every((line) => textWidth(line) <= cols);
  return [
    ...(fits ? wide : table(HEADERS, rows)),
    ...staleLines(age),
    ...hosts.flatMap((each) => todoLines(each, items)),
  ];
}

function rowOf({ host, state, since, version, capacity }: ListedHost, nowMs: number): (string | number | null)[] {
  const seconds = since === null ? null : Math.max(0, Math.floor((nowMs - Date.parse(since)) / 1000));
  return [
    ...[host, state, seconds === null ? null : durationText(seconds), capacity?.rooms ?? null],
    capacity ? memoryText(capacity.memory_mib) : null,
    capacity?.disk ? bytesText(capacity.disk.free_bytes) : null,
    version,
  ];
}

const memoryText = ({ promised, total }: { promised: number; total: number }) =>
  `${bytesText(promised * MIB)} of ${bytesText(total * MIB)}`;

function staleLines(age: number): string[] {
  if (age < DIRECTORY_STALE_SECONDS) return [];
  return [
    "",
    `The database that hosts share was last read ${durationText(Math.floor(age))} ago: the state of the other hosts is unknown.`,
    "Rooms keep running; none can be created or destroyed until the database answers. See this host's log: journalctl -u roomd",
  ];
}

function todoLines(host: ListedHost, all: readonly ListedHost[]): string[] {
  return adviceFor(host, all).flatMap(({ text, lines }) => [
    "",
    `${paint("bold", printable(host.host))}: ${text}`,
    ...lines.map((words) => `  ${shellLine(["roomd", ...words])}`),
  ]);
}
