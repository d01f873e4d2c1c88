/** The agent's log on the console, which the host stores: plain text, written synchronously. */
import { writeSync } from "node:fs";
import { inspect } from "node:util";

const STDERR = 2;

/** A marker that the host parses: on a line by itself, whatever the kernel is printing. */
export function announce(line: string): void {
  writeSync(STDERR, `\n${line}\n`);
}

export function log(message: string, error?: unknown): void {
  const why =
    error === undefined ? "" : `: ${error instanceof Error ? (error.stack ?? error.message) : inspect(error)}`;
  try {
    writeSync(STDERR, `roomd-agent: ${message}${why}\n`);
  } catch {
    // Without a console the line is lost.
  }
}
