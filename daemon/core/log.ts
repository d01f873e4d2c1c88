/** Owns the daemon's log: one JSON object a line on standard error. */
import { plainJson } from "./text.ts";

export type LogFields = Record<string, unknown>;

const LEVELS = ["debug", "info", "warn", "error"] as const;
export type LogLevel = (typeof LEVELS)[number];

export interface Log {
  debug(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  error(message: string, fields?: LogFields): void;
  with(fields: LogFields): Log;
}

/** How much was logged, at the levels that somebody should look at. */
export type LogCounts = Record<"warn" | "error", number>;

/** The same log, with its warnings and errors counted, whether they are written or not. */
export function countLog(log: Log, counts: LogCounts = { warn: 0, error: 0 }): { log: Log; counts: LogCounts } {
  const counted: Log = {
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
  return { log: counted, counts };
}

export function makeLog(
  level: LogLevel,
  write: (line: string) => void = (line) => process.stderr.write(line),
  base: LogFields = {},
): Log {
  const from = LEVELS.indexOf(level);
  const at = (name: LogLevel) => (message: string, fields?: LogFields) => {
    if (LEVELS.indexOf(name) < from) return;
    write(`${plainJson(JSON.stringify({ at: new Date().toISOString(), level: name, message, ...base, ...fields }))}\n`);
  };
  return {
    debug: at("debug"),
    info: at("info"),
    warn: at("warn"),
    error: at("error"),
    with: (fields) => makeLog(level, write, { ...base, ...fields }),
  };
}
