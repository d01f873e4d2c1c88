/** Finds a command's program, by the rules and with the exit codes of a shell. */
import { accessSync, constants, type Stats, statSync } from "node:fs";
import { resolve } from "node:path";
import { getSystemErrorName } from "node:util";
import { SystemError } from "../libc.ts";

export type Program = { path: string } | Refusal;

/** Why a command could not be started; exit code and reason are reported to the caller as a shell would report them. */
export interface Refusal {
  exitCode: 126 | 127;
  reason: string;
}

/** `name` itself if it contains a slash, relative to `cwd`; else the first executable file in `searchPath`. */
export function findProgram(name: string, cwd: string, searchPath: string): Program {
  if (name === "") return { exitCode: 127, reason: "not found" };
  if (name.includes("/")) return judge(resolve(cwd, name));
  let refusal: Refusal | null = null;
  for (const folder of searchPath.split(":")) {
    const program = judge(resolve(cwd, folder, name));
    if ("path" in program) return program;
    if (program.exitCode === 126) refusal ??= program;
  }
  // As execvp does: a directory of that name is skipped, a file that is not executable is reported.
  return refusal && refusal.reason !== IS_A_DIRECTORY ? refusal : { exitCode: 127, reason: "not found" };
}

/** Reason of a failed spawn that the search did not find. */
export function refusalOf(error: unknown): Refusal {
  const code = error instanceof SystemError ? getSystemErrorName(-error.errno) : codeOf(error);
  return code === "ENOENT"
    ? { exitCode: 127, reason: "not found" }
    : { exitCode: 126, reason: SPAWN_REASONS[code] ?? `cannot execute: ${code || error}` };
}

function codeOf(error: unknown): string {
  return error instanceof Error && "code" in error ? String(error.code) : "";
}

const IS_A_DIRECTORY = "Is a directory";
const SPAWN_REASONS: Record<string, string> = {
  E2BIG: "Argument list too long",
  EACCES: "Permission denied",
  ENOEXEC: "Exec format error",
  ENOMEM: "Cannot allocate memory",
  EAGAIN: "Resource temporarily unavailable",
};

function judge(path: string): Program {
  const found = look(path);
  if (!found) return { exitCode: 127, reason: "not found" };
  if (found.isDirectory()) return { exitCode: 126, reason: IS_A_DIRECTORY };
  try {
    accessSync(path, constants.X_OK);
    return { path };
  } catch {
    return { exitCode: 126, reason: "Permission denied" };
  }
}

/** Most directories of a search path lack the file: the look-up avoids an exception, which costs more than the look-up. */
function look(path: string): Stats | undefined {
  try {
    return statSync(path, { throwIfNoEntry: false });
  } catch {
    return undefined;
  }
}
