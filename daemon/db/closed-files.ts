/** Databases in files that never change, beside a connection's own: opened when they are read, closed when they were not for a while. */
import { join } from "node:path";
import { monotonicMs, startTimer } from "../core/clock.ts";
import { causesOf, describeError, errnoOf } from "../core/service-error.ts";
import { directoryOf, openUnchanging, preparedBy, type Queries, type Unchanging } from "./client.ts";

/** Open files of a connection. */
const MAX_OPEN = 32;
/** A file that was removed takes space for as long as it is open. */
const UNUSED_MS = 30_000;

/** A file that is missing, or is no database. */
class LostFile extends Error {
  override name = "LostFile";
}

/** Whether a read has failed because a file is missing or damaged. */
export function isLost(error: unknown): boolean {
  return causesOf(error).some((cause) => cause instanceof LostFile || errnoOf(cause)?.startsWith("SQLITE_CORRUPT"));
}

/** Of one connection. */
class ClosedFiles {
  readonly #directory: string;
  /** The one that was used last is the last. */
  readonly #open = new Map<string, Unchanging & { usedAtMs: number }>();
  #timer: Timer | null = null;

  constructor(directory: string) {
    this.#directory = directory;
  }

  get(path: string): Queries {
    const file = this.#open.get(path) ?? { ...this.#opened(path), usedAtMs: 0 };
    this.#open.delete(path);
    this.#open.set(path, file);
    file.usedAtMs = monotonicMs();
    for (const [oldest] of this.#open) {
      if (this.#open.size <= MAX_OPEN) break;
      this.#close(oldest);
    }
    this.#timer ??= startTimer(() => this.#sweep(), UNUSED_MS).unref();
    return file.queries;
  }

  #opened(path: string): Unchanging {
    try {
      return openUnchanging(join(this.#directory, path));
    } catch (error) {
      throw new LostFile(`failed to open ${path}: ${describeError(error)}`, { cause: error });
    }
  }

  #sweep(): void {
    this.#timer = null;
    for (const [path, { usedAtMs }] of this.#open) if (monotonicMs() - usedAtMs >= UNUSED_MS) this.#close(path);
    if (this.#open.size > 0) this.#timer = startTimer(() => this.#sweep(), UNUSED_MS).unref();
  }

  #close(path: string): void {
    this.#open.get(path)?.close();
    this.#open.delete(path);
  }
}

const filesOf = preparedBy((queries) => new ClosedFiles(directoryOf(queries)));

/** The file by its path from the directory of the connection's own; good for the present step only. Throws LostFile. */
export function closedFile(queries: Queries, path: string): Queries {
  return filesOf(queries).get(path);
}
