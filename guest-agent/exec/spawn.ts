/** Owns the start of a command: its program, its pipes, its session of its own. */
import * as libc from "../libc.ts";
import { asOthers } from "../precedence.ts";
import type { Cgroup } from "./cgroup.ts";
import { DEFAULT_PATH } from "./environment.ts";
import { findProgram, type Refusal, refusalOf } from "./program.ts";
import { commandAs, isOurself, type User } from "./user.ts";

/** Four times the usual: a command and its reader wake each other less often. */
const OUTPUT_PIPE_BYTES = 1024 * 1024;

export interface CommandLine {
  argv: string[];
  user: User;
  cwd: string;
  env: Record<string, string>;
  /** Whether to make a pipe for stdin; without it the command reads end of file at once. */
  stdin: boolean;
  /** Where it belongs. */
  cgroup: Cgroup | null;
}

/** A running command and our ends of its pipes, which the caller has to close. */
export interface Command {
  child: Bun.Subprocess;
  stdin: number | null;
  stdout: number;
  stderr: number;
}

export function spawn({ argv, user, cwd, env, stdin, cgroup }: CommandLine): Command | Refusal {
  const [name = ""] = argv;
  const program = findProgram(name, cwd, env.PATH ?? DEFAULT_PATH);
  if ("reason" in program) return program;
  // Else Bun would search once more; one with a slash is told its own name by the kernel, as it was given.
  const isFound = isOurself(user) && !name.includes("/");
  // Real pipes, not Bun's own: those are sockets, on which a command cannot open /dev/stdout.
  const input = stdin ? libc.pipe() : null;
  const output = libc.pipe(OUTPUT_PIPE_BYTES);
  const errors = libc.pipe();
  try {
    const begin = () =>
      Bun.spawn(isFound ? [program.path, ...argv.slice(1)] : commandAs(user, argv), {
        ...(isFound && { argv0: name }),
        cwd,
        env,
        detached: true,
        stdio: [input?.read ?? "ignore", output.write, errors.write],
      });
    const child = asOthers(() => (cgroup ? cgroup.begin(begin) : begin()));
    return { child, stdin: input?.write ?? null, stdout: output.read, stderr: errors.read };
  } catch (error) {
    closeAll(input?.write, output.read, errors.read);
    return refusalOf(error);
  } finally {
    closeAll(input?.read, output.write, errors.write);
  }
}

function closeAll(...fds: (number | undefined)[]): void {
  for (const fd of fds) if (fd !== undefined) libc.close(fd);
}
