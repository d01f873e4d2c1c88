/** Databases in files that never change, in addition to a connection's own: opened when they are read, and closed again after a while. */
import { join } from "node:path";
import { monotonicMs, startTimer } from "../core/clock.ts";
import { causesOf, describeError, errnoOf } from "../core/service-error.ts";
import { directoryOf, openUnchanging, preparedBy, type Queries, type Unchanging } from "./client.ts";

/** Open files of a connection. */
const MAX_OPEN = 32;
/** A removed file takes space for as long as it is open, and a replaced one is not seen. */
const OPEN_MS = 30_000;

/** Thrown for a file that is missing, or is not a database. */
class LostFile extends Error {
  override name = "LostFile";
}

/** Whether a read failed because a file is missing or damaged. */
export function isLost(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof LostFile || errnoOf(cause)?.startsWith("SQLITE_CORRUPT"));
}

/** Of one connection. */
class ClosedFiles {
  readonly #directory: string;
  /** In order of use, the most recent last. */
  readonly #open = new Map<string, Unchanging & { openedAtMs: number }>();
  #timer: Timer | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get(path: string): Queries {
    this.#closeOld();
    const file = this.#open.get(path) ?? { ...this.#opened(path), openedAtMs: monotonicMs() };
    this.#open.delete(path);
    this.#open.set(path, file);
    for (const [oldest] of this.#open) {
      if (this.#open.size <= MAX_OPEN) break;
      this.#close(oldest);
    }
    this.#expectOld();
    return file.queries;
  }

  closeAll(): void {
    for (const path of this.#open.keys()) this.#close(path);
  }

  #opened(path: string): Unchanging {
    const file = join(this.#directory, path);
    try {
      return openUnchanging(file);
    } catch (error) {
      // Other errors, such as lack of memory, do not mean that the file is lost.
      if (!/^SQLITE_(CANTOPEN|NOTADB|CORRUPT)/.test(errnoOf(error) ?? "")) throw error;
      throw new LostFile(`failed to open ${path}: ${describeError(error)}`, { cause: error });
    }
  }

  #expectOld(): void {
    this.#timer ??= startTimer(() => {
      this.#timer = null;
      this.#closeOld();
      if (this.#open.size > 0) this.#expectOld();
    }, OPEN_MS).unref();
  }

  #closeOld(): void {
    for (const [path, { openedAtMs }] of this.#open) if (monotonicMs() - openedAtMs >= OPEN_MS) this.#close(path);
  }

  #close(path: string): void {
    this.#open.get(path)?.close();
    this.#open.delete(path);
  }
}

const filesOf = preparedBy((queries) => new ClosedFiles(directoryOf(queries)));

/** Opens a file by its path relative to the directory of the connection's database; valid for the current step only. Throws LostFile. */
export function closedFile(queries: Queries, path: string): Queries {
  return filesOf(queries).get(path);
}

/** Closes the connection's open files, so that later steps read the files that are there now. */
export function reopenClosedFiles(queries: Queries): void {
  filesOf(queries).closeAll();
}
