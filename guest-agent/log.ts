/** Owns the agent's lines on the console, which the host keeps: plain text, written at once. */
import { writeSync } from "node:fs";
import { inspect } from "node:util";

const STDERR = 2;

/** A line that the host looks for: on a line of its own, whatever the kernel was just printing. */
export function announce(line: string): void {
  writeSync(STDERR, `\n${line}\n`);
}

export function log(what: string, error?: unknown): void {
  const why =
    error === undefined ? "" : `: ${error instanceof Error ? (error.stack ?? error.message) : inspect(error)}`;
  try {
    writeSync(STDERR, `roomd-agent: ${what}${why}\n`);
  } catch {
    // Without a console there is nobody to tell.
  }
}
