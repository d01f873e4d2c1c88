/**
 * Interpretation of tar's standard error. A guest can leave files that no tar reads or re-creates, and swap them while tar reads; that is
 * only reported, or one guest would block every backup. A shortage of the host, and each message that is not understood, is a failure.
 */

/** Paths that tar has omitted. There may be very many: the first are enough for a diagnosis. */
export interface Missed {
  count: number;
  first: string[];
}

const MAX_SHOWN = 10;
const LONGEST_SHOWN = 300;
/** The file is stored as it was at that moment, or was removed: the meaning of exit status 1. */
const NOTE =
  /: (file changed as we read it|File removed before we read it|File shrank by \d+ bytes; padding with zeros)$/;
/** Trouble that no guest causes: later files would be missing too. */
const OF_THE_HOST =
  /: (No space left on device|Disk quota exceeded|Input\/output error|Read-only file system|Cannot allocate memory|Too many open files( in system)?|Operation not permitted|Permission denied|Wrote only \d+ of \d+ bytes)$/;
const WENT_ON = "tar: Exiting with failure status due to previous errors";
const CHANGED_MEANWHILE = 1;
const PREVIOUS_ERRORS = 2;

/** Receives tar's lines as they arrive. `theirs` are the directories, entries of the archive, below which all files are guests'. */
export class TarErrors {
  readonly missed: Missed = { count: 0, first: [] };
  readonly #theirs: readonly string[];
  #failure: string | null = null;
  #wentOn = false;

  constructor(theirs: readonly string[]) {
    this.#theirs = theirs.map((name) => `tar: ./${name}/`);
  }

  /** A line without its end. Tar escapes special characters in names, so that none of them starts a line. */
  hear(line: string): void {
    if (line === WENT_ON) this.#wentOn = true;
    else if (!this.#theirs.some((start) => line.startsWith(start)) || OF_THE_HOST.test(line))
      this.#failure ??= shown(line);
    else if (!NOTE.test(line) && this.missed.count++ < MAX_SHOWN) {
      this.missed.first.push(shown(line.slice("tar: ".length)));
    }
  }

  /** Whether files changed in the meantime; throws with tar's first message about why the archive is not reliable. */
  judge({ code, signal }: { code: number; signal: string | null }): { changed: boolean } {
    if (signal !== null) throw new Error(`tar was ended by ${signal}`);
    const isWhole = code <= CHANGED_MEANWHILE || (code === PREVIOUS_ERRORS && this.#wentOn && this.#failure === null);
    if (!isWhole) throw new Error(`tar ended with ${code}: ${this.#failure ?? "no reason given"}`);
    return { changed: code === CHANGED_MEANWHILE };
  }
}

function shown(line: string): string {
  return line.length > LONGEST_SHOWN ? `${line.slice(0, 200)}…${line.slice(-99)}` : line;
}
