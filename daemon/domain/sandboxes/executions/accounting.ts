/**
 * Decides which record reports the end of an execution and which meters it: once each, for any number of calls, failures of calls, and
 * kills of the daemon in between. The state of an execution is one stage, and both answers derive from it.
 *
 *                            a call waits for its answer
 *                           yes                    no
 *       ends with its call   awaited    ─ left ─▶   left
 *                              │ begun                │ begun
 *       in the background    joined     ─ left ─▶   running     ──▶ the guest reports the end: recorded, and forgotten
 *
 * Each of these four stages exists twice: before and after metering. The first record meters it: that of the call that started it in the
 * background, that of the call that waited, else that of its end.
 */

export type Accounting =
  | "unknown"
  | "awaited"
  | "awaited_metered"
  | "joined"
  | "joined_metered"
  | "left"
  | "left_metered"
  | "running"
  | "running_metered";

interface Duties {
  /** Whether a call waits for the execution. */
  waits: boolean;
  /** Whether it runs on its own until its end. */
  runs: boolean;
  /** The record that reports its end: that of the waiting call, or a separate one when the guest reports the end. */
  records: "call" | "end" | null;
  /** The record that meters it; null: already metered, or never. */
  meters: "call" | "end" | null;
}

export const DUTIES: Readonly<Record<Accounting, Duties>> = {
  unknown: { waits: false, runs: false, records: null, meters: null },
  awaited: { waits: true, runs: false, records: "call", meters: "call" },
  awaited_metered: { waits: true, runs: false, records: "call", meters: null },
  joined: { waits: true, runs: true, records: "end", meters: "call" },
  joined_metered: { waits: true, runs: true, records: "end", meters: null },
  left: { waits: false, runs: false, records: "end", meters: "end" },
  left_metered: { waits: false, runs: false, records: "end", meters: null },
  running: { waits: false, runs: true, records: "end", meters: "end" },
  running_metered: { waits: false, runs: true, records: "end", meters: null },
};

/**
 * Events of an execution:
 *
 *     asked        a call requests it, and waits
 *     begun        it runs in the background: a call left it running, or it was found running after a restart
 *     found_over   found after a restart: it had ended without a record
 *     metered      a record is stored that meters it
 *     unmetered    that record was not stored
 *     answered     the waiting call has answered, and its record contains the end
 *     left         the waiting call is over without that, and the command may have started
 *     never_begun  the waiting call is over, or was already, and the command has not started
 *     told         the guest has reported its end
 */
export type Happening =
  | "asked"
  | "begun"
  | "found_over"
  | "metered"
  | "unmetered"
  | "answered"
  | "left"
  | "never_begun"
  | "told";

/** Absent events change nothing. */
const NEXT: Readonly<Record<Accounting, Partial<Record<Happening, Accounting>>>> = {
  unknown: { asked: "awaited", begun: "running", found_over: "left" },
  awaited: { begun: "joined", metered: "awaited_metered", answered: "unknown", left: "left", never_begun: "unknown" },
  awaited_metered: {
    begun: "joined_metered",
    unmetered: "awaited",
    answered: "unknown",
    left: "left_metered",
    never_begun: "unknown",
  },
  joined: { metered: "joined_metered", answered: "running", left: "running", never_begun: "running" },
  joined_metered: {
    unmetered: "joined",
    answered: "running_metered",
    left: "running_metered",
    never_begun: "running_metered",
  },
  left: { begun: "running", metered: "left_metered", never_begun: "unknown", told: "unknown" },
  left_metered: { begun: "running_metered", unmetered: "left", never_begun: "unknown", told: "unknown" },
  running: { metered: "running_metered", told: "unknown" },
  running_metered: { unmetered: "running", told: "unknown" },
};

/** The stage after an event. */
export function after(stage: Accounting, happening: Happening): Accounting {
  return NEXT[stage][happening] ?? stage;
}
