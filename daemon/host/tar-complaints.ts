/**
 * Owns what tar's standard error means. A guest can leave files that no tar reads or makes anew, and swaps them under its hands; that is
 * told and nothing more, or one guest would keep everybody from a backup. What the host lacks, and whatever is not understood, is
 * a failure.
 */

/** Paths that tar has left out. There may be very many of them: the first are enough to look into it. */
export interface Missed {
  count: number;
  first: string[];
}

const MOST_SHOWN = 10;
const LONGEST_SHOWN = 300;
/** The file is there as it was just then, or it went: what the exit status 1 is for. */
const NOTE =
  /: (file changed as we read it|File removed before we read it|File shrank by \d+ bytes; padding with zeros)$/;
/** Trouble that is no guest's making: what comes after it would be missing too. */
const OF_THE_HOST =
  /: (No space left on device|Disk quota exceeded|Input\/output error|Read-only file system|Cannot allocate memory|Too many open files( in system)?|Operation not permitted|Permission denied|Wrote only \d+ of \d+ bytes)$/;
const WENT_ON = "tar: Exiting with failure status due to previous errors";
const CHANGED_MEANWHILE = 1;
const PREVIOUS_ERRORS = 2;

/** Hears tar's lines as they come. `theirs` are the directories, entries of what is archived, below which all is guests'. */
export class TarComplaints {
  readonly missed: Missed = { count: 0, first: [] };
  readonly #theirs: readonly string[];
  #failure: string | null = null;
  #wentOn = false;

  constructor(theirs: readonly string[]) {
    this.#theirs = theirs.map((name) => `tar: ./${name}/`);
  }

  /** A line without its end. Tar escapes what is in names, so that none of them begins a line. */
  hear(line: string): void {
    if (line === WENT_ON) this.#wentOn = true;
    else if (!this.#theirs.some((start) => line.startsWith(start)) || OF_THE_HOST.test(line))
      this.#failure ??= shown(line);
    else if (!NOTE.test(line) && this.missed.count++ < MOST_SHOWN) {
      this.missed.first.push(shown(line.slice("tar: ".length)));
    }
  }

  /** Whether files changed meanwhile; throws with the first words of tar that say why the archive is not to be relied upon. */
  judge({ code, signal }: { code: number; signal: string | null }): { changed: boolean } {
    if (signal !== null) throw new Error(`tar was ended by ${signal}`);
    const isWhole = code <= CHANGED_MEANWHILE || (code === PREVIOUS_ERRORS && this.#wentOn && this.#failure === null);
    if (!isWhole) throw new Error(`tar ended with ${code}: ${this.#failure ?? "it did not say why"}`);
    return { changed: code === CHANGED_MEANWHILE };
  }
}

function shown(line: string): string {
  return line.length > LONGEST_SHOWN ? `${line.slice(0, 200)}…${line.slice(-99)}` : line;
}
