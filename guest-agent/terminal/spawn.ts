/**
 * Starts a command in its own terminal: the pseudo-terminal, its size and owner, and the session.
 *
 * The agent reads the master itself, not with Bun's terminal: that one has no backpressure, while an unread master blocks the writer as a
 * full pipe does.
 */
import { fchownSync } from "node:fs";
import { asOthers } from "../cpu-priority.ts";
import type { Cgroup } from "../exec/cgroup.ts";
import { DEFAULT_PATH } from "../exec/environment.ts";
import { findProgram, type Refusal, refusalOf } from "../exec/program.ts";
import { commandAs, type User } from "../exec/user.ts";
import * as libc from "../libc.ts";
import { runtimeProgram } from "../runtime.ts";

/** Group `tty`, to which devpts assigns terminals. */
const TTY_GROUP = 5;

export interface TerminalLine {
  argv: string[];
  user: User;
  cwd: string;
  env: Record<string, string>;
  rows: number;
  cols: number;
  /** The cgroup of its processes. */
  cgroup: Cgroup | null;
}

/** A running command and both ends of its terminal, which the caller has to close. */
export interface TerminalCommand extends libc.PseudoTerminal {
  child: Bun.Subprocess;
}

export function spawnInTerminal({ argv, user, cwd, env, rows, cols, cgroup }: TerminalLine): TerminalCommand | Refusal {
  const program = findProgram(argv[0] ?? "", cwd, env.PATH ?? DEFAULT_PATH);
  if ("reason" in program) return program;
  const terminal = libc.openPseudoTerminal();
  const { master, slave } = terminal;
  try {
    libc.setWindowSize(master, rows, cols);
    fchownSync(slave, user.uid, TTY_GROUP);
    // setsid executes the command: leader of its session, with this terminal.
    const begin = () =>
      Bun.spawn(runtimeProgram("setsid", "--ctty", "--", ...commandAs(user, argv)), {
        cwd,
        env,
        stdio: [slave, slave, slave],
      });
    const child = asOthers(() => (cgroup ? cgroup.begin(begin) : begin()));
    return { child, ...terminal };
  } catch (error) {
    libc.close(master);
    libc.close(slave);
    return refusalOf(error);
  }
}
