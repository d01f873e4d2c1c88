/**
 * Starts a command: its program, its pipes, its own session.
 *
 * Uses one libc call (posix_spawn), which takes two thirds of the time of Bun's spawn and also places the command in its cgroup.
 */
import { openSync } from "node:fs";
import { constants } from "node:os";
import { asOthers } from "../cpu-priority.ts";
import * as libc from "../libc.ts";
import type { Cgroup } from "./cgroup.ts";
import { DEFAULT_PATH } from "./environment.ts";
import { findProgram, type Refusal, refusalOf } from "./program.ts";
import { commandAs, isOurself, type User } from "./user.ts";

/** Sixteen times the default size (64 KiB): a command and its reader wake each other less often. */
const OUTPUT_PIPE_BYTES = 1024 * 1024;

/** Errors of the kernel when a process cannot start in a cgroup. */
const { ENODEV, EBUSY, EOPNOTSUPP, ENOSYS } = constants.errno;
const NO_GROUP: ReadonlySet<number> = new Set([ENODEV, EBUSY, EOPNOTSUPP, ENOSYS]);

let empty: number | null = null;

export interface CommandLine {
  argv: string[];
  user: User;
  cwd: string;
  env: Record<string, string>;
  /** Whether to make a pipe for stdin; otherwise the command reads end of file immediately. */
  stdin: boolean;
  /** The cgroup to start it in. */
  cgroup: Cgroup | null;
}

/** The caller has to wait for the process. */
export interface Command {
  /** The caller's to wait for. */
  pid: number;
  stdin: number | null;
  stdout: number;
  stderr: number;
}

export function spawn({ argv, user, cwd, env, stdin, cgroup }: CommandLine): Command | Refusal {
  const [name = ""] = argv;
  const program = findProgram(name, cwd, env.PATH ?? DEFAULT_PATH);
  if ("reason" in program) return program;
  const words = commandAs(user, argv);
  // A name with a slash is passed as given: the kernel passes it on to the program as its own name.
  const path = isOurself(user) && !name.includes("/") ? program.path : (words[0] ?? "");
  // Pipes, not sockets: a command cannot open /dev/stdout on a socket.
  const input = stdin ? libc.pipe() : null;
  const output = libc.pipe(OUTPUT_PIPE_BYTES);
  const errors = libc.pipe();
  try {
    const stdio = [input?.read ?? nothing(), output.write, errors.write] as const;
    const pid = asOthers(() => beginIn(cgroup, { path, argv: words, cwd, env, stdio }));
    return { pid, stdin: input?.write ?? null, stdout: output.read, stderr: errors.read };
  } catch (error) {
    closeAll(input?.write, output.read, errors.read);
    return refusalOf(error);
  } finally {
    closeAll(input?.read, output.write, errors.write);
  }
}

function beginIn(cgroup: Cgroup | null, command: Omit<libc.Spawned, "cgroup">): number {
  if (cgroup === null) return libc.spawn({ ...command, cgroup: null });
  try {
    return libc.spawn({ ...command, cgroup: cgroup.place });
  } catch (error) {
    // Root may have removed the cgroup, or changed it to a type that accepts no processes: then the process group is used instead.
    if (!(error instanceof libc.SystemError && NO_GROUP.has(error.errno))) throw error;
    return libc.spawn({ ...command, cgroup: null });
  }
}

/** Standard input of a command that has none. */
function nothing(): number {
  empty ??= openSync("/dev/null", "r");
  return empty;
}

function closeAll(...fds: (number | undefined)[]): void {
  for (const fd of fds) if (fd !== undefined) libc.close(fd);
}
