/** Databases in files that never change, in addition to a connection's own: opened when they are read, and closed again after a while. */
import { join } from "node:path";
import { LRUCache } from "lru-cache";
import { startTimer } from "../core/clock.ts";
import { AGES } from "../core/lru.ts";
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
  readonly #open = new LRUCache<string, Unchanging>({
    ...{ max: MAX_OPEN, ttl: OPEN_MS, ...AGES },
    dispose: (file) => file.close(),
  });
  #timer: Timer | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get(path: string): Queries {
    this.#open.purgeStale();
    const file = this.#open.get(path) ?? this.#opened(path);
    if (!this.#open.has(path)) this.#open.set(path, file);
    this.#expectOld();
    return file.queries;
  }

  closeAll(): void {
    this.#open.clear();
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
      this.#open.purgeStale();
      if (this.#open.size > 0) this.#expectOld();
    }, OPEN_MS).unref();
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
