/**
 * Owns the points at which a test can stop this process: between the steps of a create, around a commit, on the way of a
 * write to its name. Inert unless the environment names one point, and then only that one does anything:
 *
 *   ROOMD_FAULT_POINT=place.synced=kill      SIGKILL to itself, as a crash would end it there
 *   ROOMD_FAULT_POINT=run.plug.before=stall  waits there until SIGUSR2
 *   ROOMD_FAULT_POINT=commit.written=kill@7  the seventh time that the point is passed
 *   ROOMD_FAULT_POINT=place.written=throw    throws outside of every promise, as a socket's handler would, and goes on
 *
 * A point that is reached says so in one line on standard error first.
 */
import { writeSync } from "node:fs";
import { monotonicMs, startTimer } from "./clock.ts";

export const FAULT_VARIABLE = "ROOMD_FAULT_POINT";

/** The steps of a guest's start, in their order: each has a point before and after it, and before and after its undo. */
export const FAULT_STEPS = [
  ...["directories", "disk", "machine", "load", "devices", "plug", "resume", "agent"],
  // Of one that is restored from what was saved of it.
  ...["drive", "vsock", "spend"],
] as const;

/** Points of code that waits nowhere: a test can kill there, and not stall. */
const SYNCHRONOUS = ["commit.before", "commit.written", "commit.after", "audit.recorded"] as const;

const PLACES = [
  "call.claimed", // a call with an Idempotency-Key is known by it, and nothing of it is done
  "call.worked", // … its verb has done its work, nobody has its answer
  "message.staged", // some deliveries of a message with many recipients are written, the message is not
  "room.made", // its directory is there, its row is not
  "room.emptied", // its guests have ended, its drive is in place
  "room.retired", // its drive is put away, its row says destroying
  "sandbox.accepted", // its row is there, nothing of its guest is
  "sandbox.adopting", // its guest is about to be taken over, which is noted
  "sandbox.waking", // what wakes it has come, nothing of it is resumed
  "sandbox.ended", // its guest has ended, its directory is there
  "sandbox.erased", // its directory is gone, its row says destroying
  "hibernate.saved", // a guest's memory is on disk, nothing says so
  "hibernate.kept", // … what says so is there too, its processes are
  "snapshot.cut", // a snapshot's guest stands still, all of it is taken
  "snapshot.whole", // … it goes on, the snapshot is whole on disk, its row is not there
  "layers.merged", // a guest's disk lies over its base, the layers that were in between are there
  "checkpoint.copied", // a room's drive is copied while its guests run
  "checkpoint.cut", // … they stand still, the database's part is read, the drive is up to date
  "checkpoint.whole", // … they go on, all of it is on disk, its row is not there
  "fork.drive", // the drive of a room that is made of a checkpoint is there, its row is not
  "fork.rows", // … and its messages, barriers and agents
  "fork.made", // … its row is there, none of its sandboxes is
  "restore.noted", // a room is to be turned back, its row says so, its next drive is there
  "restore.ended", // … none of its sandboxes runs
  "restore.turned", // … the drive is the other, the database has what it has come to have since
  "restore.given", // … it has what it had, none of the sandboxes runs
  "move.copied", // the drive of a room that is to move is copied while its guests run, nothing says so
  "move.noted", // a room's row says that it moves, nothing of it has ended
  "move.saved", // … its sandboxes are on disk or have ended, nothing is packed
  "move.packed", // … drive and state are packed, the other host knows nothing
  "move.sent", // … the other host has all of it, the room is still here
  "move.claimed", // the room is the other host's, which does not know it yet
  "move.handed", // … it does, what there was here is in its place
  "move.retired", // … its drive is put away, its row says that it moves
  "move.received", // all of a room that comes is on disk, nothing says so
  "move.ready", // … what says so is there too, the other host has no answer
  "move.placed", // the room is here by the directory, its drive is in its place, its row is not there
  "move.arrived", // … its row is there, and what it came in
  "backup.copied", // a room's drive is copied for its file while its guests run
  "backup.packed", // … drive and state are packed, nobody has any of it
  "backup.read", // all of a room's file is on disk, nothing of its room is
  "backup.drive", // … the drive of that room is there, its row is not
  "backup.rows", // … and its messages, barriers and agents
  "backup.made", // … its row is there, and what it came in
  "start.begun", // the sandboxes of a room that is made or turned back run, its row says that they do not all
  "day.copied", // a closed day of the audit is a file on disk, and is not recorded
  "day.noted", // … what it has of each chain is recorded, the file is not
  "day.recorded", // … the file is, its records are in the database too
  "day.shortened", // … some of them are not any more
  "day.purged", // all of a day's records are purged, its file is not
  "day.removed", // … it is recorded that the file is removed, and it is there
  "pool.rehearsing", // a machine that is nobody's has the devices of its rehearsal
  "virtiofsd.renewed", // a guest's next virtiofsd runs, and is not recorded
  "vsock.renewed", // the same of its vsock device
  "member.noted", // a host has noted that it is a member, the directory has not committed it
  "round.written", // what a change of what hosts share comes to is in their directory, which has not committed it
  "round.true", // … it has: all hosts have it so but this one, which asked for it
  "place.written", // the temporary file is whole and not synced
  "place.synced", // … synced and not renamed
  "place.renamed", // … renamed, its directory not synced
  "append.written", // the bytes are in the file and not synced
  "append.synced",
  "exec.before", // the request is not sent
  "exec.sent", // … sent, no answer read
  "exec.done", // the result is here and told to nobody
] as const;

type StepPoint<Name extends string> = `${"run" | "undo"}.${Name}.${"before" | "after"}`;

/** Where a step that a test made up has points too, which nothing can name. */
export type FaultPoint = (typeof SYNCHRONOUS)[number] | (typeof PLACES)[number] | StepPoint<string>;

/** Every point that can be named. */
export const FAULT_POINTS: readonly string[] = [
  ...SYNCHRONOUS,
  ...PLACES,
  ...(["run", "undo"] as const).flatMap((way) =>
    FAULT_STEPS.flatMap((step) => [`${way}.${step}.before`, `${way}.${step}.after`]),
  ),
];

interface Fault {
  point: string;
  /** `compute` and `sleep` block the event loop. */
  does: "kill" | "stall" | "throw" | "compute" | "sleep";
  /** Passings of the point that do nothing, before the one that does. */
  passes: number;
}

/** Throws on a point that does not exist: a test would otherwise wait for it in vain. */
export function readFault(text: string | undefined): Fault | null {
  if (text === undefined || text === "") return null;
  const [, point = "", does = "", nth = "1"] =
    /^([\w.]+)=(kill|stall|throw|compute|sleep)(?:@([1-9]\d*))?$/.exec(text) ?? [];
  if (!FAULT_POINTS.includes(point)) throw new Error(`${FAULT_VARIABLE}=${text} names no point of this program`);
  if (does === "stall" && (SYNCHRONOUS as readonly string[]).includes(point)) {
    throw new Error(`${FAULT_VARIABLE}=${text}: nothing can wait at ${point}`);
  }
  return { point, does: does as Fault["does"], passes: Number(nth) - 1 };
}

const BLOCKED_MS = 500;

const fault = readFault(process.env[FAULT_VARIABLE]);

/** Does what the environment asks for at this point; nothing, and at once, in all other cases. */
export function faultPoint(name: FaultPoint): Promise<void> | undefined {
  if (fault === null) return undefined;
  return reach(fault, name);
}

function reach(wanted: Fault, name: FaultPoint): Promise<void> | undefined {
  if (wanted.point !== name || wanted.passes-- !== 0) return undefined;
  if (wanted.does === "throw") {
    const cause = new Error("as a test asked for");
    startTimer(() => {
      throw new Error(`thrown at ${name}`, { cause });
    }, 0);
    return undefined;
  }
  if (wanted.does === "sleep") Bun.sleepSync(BLOCKED_MS);
  const until = monotonicMs() + BLOCKED_MS;
  while (wanted.does === "compute" && monotonicMs() < until);
  if (wanted.does === "sleep" || wanted.does === "compute") return undefined;
  return new Promise((resolve) => {
    // Whoever hears of it may answer at once, and the signal ends a process that does not await it.
    if (wanted.does === "stall") process.once("SIGUSR2", () => resolve());
    writeSync(2, `${JSON.stringify({ fault_point: name, does: wanted.does })}\n`);
    if (wanted.does === "kill") process.kill(process.pid, "SIGKILL");
  });
}
