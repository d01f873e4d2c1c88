/** Owns the processes of a session: everyone who descends from its leader and has not begun a session of their own. */
import { readdirSync, readFileSync } from "node:fs";

/** Sends a signal to every process of the session; returns whether there was any. */
export function signalSession(session: number, signal: NodeJS.Signals | 0): boolean {
  const members = membersOf(session);
  for (const pid of members) {
    try {
      process.kill(pid, signal);
    } catch {
      // It has ended meanwhile.
    }
  }
  return members.length > 0;
}

function membersOf(session: number): number[] {
  return readdirSync("/proc")
    .filter((name) => /^\d+$/.test(name) && isMember(name, session))
    .map(Number);
}

/** /proc/PID/stat: `pid (name) state parent group session …`, where the name may hold anything; a zombie is none. */
function isMember(pid: string, session: number): boolean {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, "latin1");
    const [state, , , of] = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
    return Number(of) === session && state !== "Z";
  } catch {
    return false;
  }
}
