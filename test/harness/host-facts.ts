/** Owns what the host says of a daemon and its guests, from outside: processes, descriptors, mounts, memory. */
import { readdirSync, readFileSync, readlinkSync } from "node:fs";
import { basename } from "node:path";
import type { TestDaemon } from "./daemon.ts";
import { commandLineOf, type Part, PROGRAMS } from "./guests.ts";

/** Processes that were started as one: virtiofsd is two of them. */
export interface Session {
  leader: number;
  part: Part | "other";
  /** Null when its command line names none. */
  sandbox_id: string | null;
  argv: string[];
}

const SANDBOX_ID = /sbx_[0-9A-Z]{26}/;

/** Everything that runs for this daemon, besides itself: whatever mentions its directories, and its children. */
export function sessionsOf(daemon: TestDaemon): Session[] {
  const found = new Map<number, Session>();
  for (const pid of pids()) {
    if (pid === daemon.pid) continue;
    const argv = commandLineOf(pid);
    const line = argv.join(" ");
    const facts = statOf(pid);
    if (!facts || facts.state === "Z" || !line.includes(daemon.home)) continue;
    const program = basename(argv[0] ?? "");
    const part = (Object.keys(PROGRAMS) as Part[]).find((each) => PROGRAMS[each].test(program)) ?? "other";
    const leader = facts.session;
    if (!found.has(leader)) found.set(leader, { leader, part, sandbox_id: SANDBOX_ID.exec(line)?.[0] ?? null, argv });
  }
  return [...found.values()];
}

/** Children of the daemon that have ended and that it has not noticed. */
export function zombiesOf(daemon: TestDaemon): number[] {
  return pids().filter((pid) => {
    const facts = statOf(pid);
    return facts?.state === "Z" && facts.parent === daemon.pid;
  });
}

/** What the process has open, one line each: `socket`, `pipe`, `[eventfd]`, or a path. */
export function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => {
    try {
      const target = readlinkSync(`/proc/${pid}/fd/${fd}`);
      return [target.replace(/^(socket|pipe|anon_inode):/, "$1 ").replace(/^(socket|pipe) .*/, "$1")];
    } catch {
      return []; // closed meanwhile
    }
  });
}

/** How many descriptors of each kind there are; ids are left out of paths. */
export function descriptorKinds(pid: number): Record<string, number> {
  const kinds: Record<string, number> = {};
  for (const target of descriptorsOf(pid).sort()) {
    const kind = target.replaceAll(/(sbx|rom)_[0-9A-Z]{26}/g, "$1_…");
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return kinds;
}

export function mountsOf(daemon: TestDaemon): string[] {
  return readFileSync("/proc/self/mounts", "utf8")
    .split("\n")
    .filter((line) => line.includes(daemon.home));
}

/** Memory that the process holds and shares with no other, in MiB: files mapped by all daemons are not its own. */
export function privateMemoryMib(pid: number): number {
  const rollup = readFileSync(`/proc/${pid}/smaps_rollup`, "utf8");
  const kib = [...rollup.matchAll(/^Private_(?:Clean|Dirty):\s+(\d+) kB$/gm)].map((match) => Number(match[1]));
  return kib.reduce((sum, each) => sum + each, 0) / 1024;
}

function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

function statOf(pid: number): { state: string; parent: number; session: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in brackets may hold anything.
    const [state = "", parent, , session] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return { state, parent: Number(parent), session: Number(session) };
  } catch {
    return null;
  }
}
