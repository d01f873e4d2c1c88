/** Rejects arguments that are not UTF-8: the runtime decodes them with U+FFFD, so another text than the typed one would be passed on. */
import { readFileSync } from "node:fs";
import { CliError, EXIT } from "./cli-error.ts";

const CMDLINE = "/proc/self/cmdline";

/**
 * Throws CliError for an argument that cannot be passed on. If the kernel does not expose a process's own argument bytes, nothing is
 * refused.
 */
export function requireText(args: readonly string[], cmdline = readCmdline): void {
  if (!args.some((arg) => arg.includes("\uFFFD"))) return;
  const bytes = cmdline();
  if (bytes === null) return;
  try {
    new TextDecoder("utf-8", { fatal: true }).decode(bytes);
  } catch {
    const detail = "An argument has bytes that are not UTF-8, which roomd cannot pass on.";
    const hint = "Send them as a file: `roomd cp`, or standard input of `roomd exec -i`.";
    throw new CliError({ detail, errors: [], hint }, EXIT.usage);
  }
}

function readCmdline(): Buffer | null {
  try {
    return readFileSync(CMDLINE);
  } catch {
    return null;
  }
}
