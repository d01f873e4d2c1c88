/**
 * The daemon's log on standard error: one JSON object per line, or, if the reader is the systemd journal, a line for people with its
 * priority, which `journalctl -p` selects by. Names from guests and clients cannot control the reader's terminal.
 */
import { fstatSync } from "node:fs";
import { now } from "./clock.ts";
import { plainJson } from "./text.ts";

export type LogFields = Record<string, unknown>;

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LEVELS)[number];

/** The lowest level that is logged; may change while the daemon runs. */
export interface Threshold {
  level: LogLevel;
}

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  with(fields: LogFields): Log;
}

/** Number of log entries at the levels that need attention. */
export type LogCounts = Record<"warn" | "error", number>;

/** Wraps the log to count warnings and errors, even below the threshold. */
export function countLog(log: Log, counts: LogCounts = { warn: 0, error: 0 }): { log: Log; counts: LogCounts } {
  const countingLog: Log = {
    ...log,
    warn: (message, fields) => {
      counts.warn++;
      log.warn(message, fields);
    },
    error: (message, fields) => {
      counts.error++;
      log.error(message, fields);
    },
    with: (fields) => countLog(log.with(fields), counts).log,
  };
  return { log: countingLog, counts };
}

/** A line without its end. */
export type LogFormat = (level: LogLevel, message: string, fields: LogFields) => string;

/** For programs. */
export const asJson: LogFormat = (level, message, fields) =>
  plainJson(JSON.stringify({ at: now(), level, message, ...fields }));

/** syslog(3)'s numbers. */
const PRIORITIES: Record<LogLevel, number> = { debug: 7, info: 6, warn: 4, error: 3 };
const PLAIN_VALUE = /^[\w.:/@+-]+$/;

/** For people, who see the time in the journal; the journal strips the number (sd-daemon(3)). */
export const forJournal: LogFormat = (level, message, fields) => {
  const fieldText = Object.entries(fields).flatMap(([name, value]) =>
    value === undefined ? [] : [` ${name}=${shown(value)}`],
  );
  const text = PRINTABLE.test(message) ? message : JSON.stringify(message);
  return plainJson(`<${PRIORITIES[level]}>${text}${fieldText.join("")}`);
};

/** Text without line breaks and control characters. */
const PRINTABLE = /^[^\p{Cc}]*$/u;

function shown(value: unknown): string {
  const text = typeof value === "string" ? value : JSON.stringify(value);
  return typeof value === "string" && !PLAIN_VALUE.test(text) ? JSON.stringify(text) : text;
}

/** The format for the reader of our standard error, detected by JOURNAL_STREAM (systemd.exec(5)). */
export function formatOfStderr(environment: Record<string, string | undefined> = process.env): LogFormat {
  const { dev, ino } = fstatSync(process.stderr.fd);
  return environment.JOURNAL_STREAM === `${dev}:${ino}` ? forJournal : asJson;
}

export function makeLog(
  threshold: LogLevel | Threshold,
  write: (line: string) => void = (line) => process.stderr.write(line),
  format: LogFormat = formatOfStderr(),
  base: LogFields = {},
): Log {
  const lowest = typeof threshold === "string" ? { level: threshold } : threshold;
  const at = (name: LogLevel) => (message: string, fields?: LogFields) => {
    if (LEVELS.indexOf(name) < LEVELS.indexOf(lowest.level)) return;
    write(`${format(name, message, { ...base, ...fields })}\n`);
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => makeLog(lowest, write, format, { ...base, ...fields }),
  };
}
