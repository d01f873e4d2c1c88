/** The host's view of a daemon and its guests, from outside: processes, descriptors, mounts, memory. */
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

/** Of /proc, on every Linux. */
const TICKS_PER_SECOND = 100;
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

/** The open descriptors of a process, as /proc names them: `socket:[123]`, `anon_inode:[eventpoll]`, or a path. */
export function descriptorsOf(pid: number): string[] {
  return readdirSync(`/proc/${pid}/fd`).flatMap((fd) => targetOf(pid, fd) ?? []);
}

/**
 * The number of descriptors of each kind; ids are removed from paths. Client connections are not counted: clients decide how many they keep
 * open.
 */
export function descriptorKinds(pid: number): Record<string, number> {
  const connected = establishedTcp();
  const kinds: Record<string, number> = {};
  for (const fd of readdirSync(`/proc/${pid}/fd`)) {
    const target = targetOf(pid, fd);
    if (target === null || connected.has(target)) continue;
    const kind = target.replace(/:\[\d+\]$/, "").replaceAll(/(sbx|rom)_[0-9A-Z]{26}/g, "$1_…");
    kinds[kind] = (kinds[kind] ?? 0) + 1;
  }
  return Object.fromEntries(Object.entries(kinds).sort());
}

/** As they are named in /proc/PID/fd. */
function establishedTcp(): Set<string> {
  const lines = ["tcp", "tcp6"].flatMap((family) => readFileSync(`/proc/net/${family}`, "utf8").split("\n").slice(1));
  const fields = lines.map((line) => line.trim().split(/\s+/)).filter((each) => each.length > 9);
  // The state is the fourth field, 0A for listening; the inode is the tenth.
  return new Set(fields.filter((each) => each[3] !== "0A").map((each) => `socket:[${each[9]}]`));
}

function targetOf(pid: number, fd: string): string | null {
  try {
    return readlinkSync(`/proc/${pid}/fd/${fd}`);
  } catch {
    return null; // closed in the meantime
  }
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

/** Processor time that the process has used so far, with all its threads. */
export function processorSeconds(pid: number): number {
  return (statOf(pid)?.ticks ?? Number.NaN) / TICKS_PER_SECOND;
}

/** Processes that this one has started and that have it as parent still. */
export function childrenOf(pid: number): number[] {
  return pids().filter((each) => statOf(each)?.parent === pid);
}

function pids(): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name))
    .map(Number);
}

/** `ticks` are of the process's own processor time. */
function statOf(pid: number): { state: string; parent: number; session: number; ticks: number } | null {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "utf8");
    // The name in brackets may hold anything.
    const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    const [state = "", parent, , session] = fields;
    // In user and in system mode.
    const ticks = Number(fields[11]) + Number(fields[12]);
    return { state, parent: Number(parent), session: Number(session), ticks };
  } catch {
    return null;
  }
}
