/**
 * Points at which a test can stop this process: between the steps of a create, around a commit, between the write and the rename of a file.
 * Inert unless the environment names one point, and then only that one is active:
 *
 *   ROOMD_FAULT_POINT=place.synced=kill      SIGKILL to itself, as a crash would end it there
 *   ROOMD_FAULT_POINT=run.plug.before=stall  waits there until SIGUSR2
 *   ROOMD_FAULT_POINT=commit.written=kill@7  the seventh time that the point is passed
 *   ROOMD_FAULT_POINT=place.written=throw    throws outside of every promise, as a socket's handler would, and continues
 *
 * A point that is reached first writes one line to standard error.
 */
import { writeSync } from "node:fs";
import { monotonicMs, startTimer } from "./clock.ts";

export const FAULT_VARIABLE = "ROOMD_FAULT_POINT";

/** Steps of a guest's start, in order: each has a point before and after it, and before and after its undo. */
export const FAULT_STEPS = [
  ...["directories", "disk", "machine", "load", "devices", "plug", "resume", "agent"],
  // Of a guest that is restored from its saved state.
  ...["drive", "vsock", "spend"],
] as const;

/** Points in synchronous code: a test can kill the process there, but not stall it. */
const SYNCHRONOUS = ["commit.before", "commit.written", "commit.after", "audit.recorded"] as const;

const PLACES = [
  "call.claimed", // a call with an Idempotency-Key is recorded, its work has not started
  "call.worked", // … its verb has done its work, no client has the answer
  "message.staged", // some deliveries of a message with many recipients are written, the message is not
  "room.made", // the room's directory exists, its row does not
  "room.emptied", // the room's guests have ended, its drive is in place
  "room.retired", // the room's drive is retired, its row is `destroying`
  "sandbox.accepted", // the sandbox's row exists, no part of its guest does
  "sandbox.adopting", // the sandbox's guest is about to be adopted, which is recorded
  "sandbox.waking", // a wake-up call for the sandbox has arrived, its guest is not resumed
  "sandbox.ended", // the sandbox's guest has ended, its directory exists
  "sandbox.erased", // the sandbox's directory is removed, its row is `destroying`
  "hibernate.saved", // a guest's memory is on disk, its completion mark is not
  "hibernate.kept", // … the mark exists too, its processes still run
  "snapshot.cut", // a snapshot's guest is paused, all of it is copied
  "snapshot.whole", // … it runs again, the snapshot is complete on disk, its row is missing
  "layers.merged", // a guest's disk is rebased on its base, the layers in between still exist
  "checkpoint.copied", // a room's drive is copied while its guests run
  "checkpoint.cut", // … they are paused, the database's part is read, the drive is up to date
  "checkpoint.whole", // … they go on, all of it is on disk, its row is not there
  "fork.drive", // the drive of a room that is made of a checkpoint is there, its row is not
  "fork.rows", // … and its messages, barriers and agents
  "fork.made", // … its row is there, none of its sandboxes is
  "restore.rows", // the rows of a checkpoint are there under another key, the room's row is not marked
  "restore.noted", // a room is to be restored, its row is marked, its next drive is there
  "restore.ended", // … none of its sandboxes runs
  "restore.turned", // … the drive is swapped, the database still has the newer state
  "restore.given", // … the database has the restored state, no sandbox of the room runs
  "move.copied", // the drive of a room that will move is copied while its guests run; the move is not recorded
  "move.noted", // the room's row marks it as moving, no part of the room has ended
  "move.saved", // … its sandboxes are on disk or have ended, nothing is packed
  "move.packed", // … drive and state are packed, the other host has nothing
  "move.sent", // … the other host has all of it, the room is still here
  "move.claimed", // the room is the other host's, which has not noticed yet
  "move.handed", // … it has, the room's former parts here are still in place
  "move.retired", // … its drive is retired, its row is marked as moving
  "move.staged", // the rows of a room that came are there under another key; no row of the room is
  "move.received", // all of an incoming room is on disk, its completion mark is not
  "move.ready", // … the mark is there too, the other host has no answer
  "move.placed", // the room is here by the cluster directory, its drive is in its place, its row is not there
  "move.arrived", // … its row is there, and its transfer files
  "backup.copied", // a room's drive is copied for its file while its guests run
  "backup.packed", // … drive and state are packed, no client has any of it
  "backup.read", // all of a room's file is on disk, nothing of its room is
  "backup.drive", // … the drive of that room is there, its row is not
  "backup.rows", // … and its messages, barriers and agents
  "backup.made", // … its row is there, and its transfer files
  "start.begun", // the sandboxes of a made or restored room run, its row is not fully updated
  "day.copied", // a closed day of the audit is a file on disk, and is not recorded
  "day.noted", // … its part of each chain is recorded, the file is not
  "day.recorded", // … the file is, its records are in the database too
  "day.shortened", // … some of them are not any more
  "day.purged", // all of a day's records are purged, its file is not
  "day.removed", // … it is recorded that the file is removed, and it is there
  "pool.rehearsing", // an unassigned pool machine has the devices of its rehearsal
  "virtiofsd.renewed", // a guest's next virtiofsd runs, and is not recorded
  "vsock.renewed", // the same of its vsock device
  "member.noted", // a host has noted that it is a member, the cluster directory has not committed it
  "round.written", // the rows of a shared change are in the cluster directory, which has not committed them
  "round.true", // … the directory has committed: all hosts see the change except this one, which requested it
  "place.written", // the temporary file is complete, not synced
  "place.synced", // … synced, not renamed
  "place.renamed", // … renamed, its directory not synced
  "append.written", // the bytes are in the file, not synced
  "append.synced",
  "exec.before", // the request is not sent
  "exec.sent", // … sent, no answer read
  "exec.done", // the result has arrived and is reported to no client
] as const;

type StepPoint<Name extends string> = `${"run" | "undo"}.${Name}.${"before" | "after"}`;

/** Type of points that includes those of a step made up by a test, which the variable cannot name. */
export type FaultPoint = (typeof SYNCHRONOUS)[number] | (typeof PLACES)[number] | StepPoint<string>;

/** All points that the variable can name. */
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
  /** Number of passes without effect, before the effective one. */
  passes: number;
}

/** Throws if the point does not exist: a test would otherwise wait for it indefinitely. */
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

/** Performs the fault that the environment requests at this point; otherwise returns immediately. */
export function faultPoint(name: FaultPoint): Promise<void> | undefined {
  if (fault === null) return undefined;
  return reach(fault, name);
}

function reach(armedFault: Fault, name: FaultPoint): Promise<void> | undefined {
  if (armedFault.point !== name || armedFault.passes-- !== 0) return undefined;
  if (armedFault.does === "throw") {
    const cause = new Error("requested by a test");
    startTimer(() => {
      throw new Error(`thrown at ${name}`, { cause });
    }, 0);
    return undefined;
  }
  if (armedFault.does === "sleep") Bun.sleepSync(BLOCKED_MS);
  const until = monotonicMs() + BLOCKED_MS;
  while (armedFault.does === "compute" && monotonicMs() < until);
  if (armedFault.does === "sleep" || armedFault.does === "compute") return undefined;
  return new Promise((resolve) => {
    // A test that sees the line may signal immediately, and the signal ends a process without a handler.
    if (armedFault.does === "stall") process.once("SIGUSR2", () => resolve());
    writeSync(2, `${JSON.stringify({ fault_point: name, does: armedFault.does })}\n`);
    if (armedFault.does === "kill") process.kill(process.pid, "SIGKILL");
  });
}
