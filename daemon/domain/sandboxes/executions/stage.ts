/**
 * Owns who records the end of an execution, and who meters it: once each, whatever calls are made for it, whichever of them fail, and
 * wherever a daemon is killed between. What is known of an execution is one stage; both answers are read off the stage.
 *
 *                        a call waits for its answer
 *                       yes                    no
 *   ends with its call   awaited    ─ left ─▶   left
 *                          │ begun                │ begun
 *   runs on by itself    joined     ─ left ─▶   running     ──▶ the guest tells of the end: recorded, and no longer known
 *
 * Each of these four is there twice: before it is metered and after. Metered it is with the first record of it: of the call that began
 * it and left it running, of the call that waited, else of its end.
 */

export type Stage =
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
  /** Whether a call waits for it. */
  waits: boolean;
  /** It runs on its own until its end. */
  runs: boolean;
  /** Whose record tells of its end: that of the call that waits, or one of ours when the guest tells of it. */
  records: "call" | "end" | null;
  /** With whose record it is metered; null: it is metered already, or never. */
  meters: "call" | "end" | null;
}

export const DUTIES: Readonly<Record<Stage, Duties>> = {
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
 *   asked        a call asks for it, and waits
 *   begun        it runs on by itself: a call left it running, or it was found running after a restart
 *   found_over   it was found after a restart, had ended, and no record told of that
 *   metered      a record is kept by which it is metered
 *   unmetered    that record was not kept
 *   answered     the call that waited has answered, and its record tells of the end
 *   left         the call that waited is over without that, and the command may have begun
 *   never_begun  the call that waited is over, or was already, and the command has not begun
 *   told         the guest has told of its end
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

/** What is not named changes nothing. */
const NEXT: Readonly<Record<Stage, Partial<Record<Happening, Stage>>>> = {
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

/** The stage after something has happened. */
export function after(stage: Stage, happening: Happening): Stage {
  return NEXT[stage][happening] ?? stage;
}
