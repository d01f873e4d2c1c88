/**
 * The disk of a simulated host: a directory in memory, and its database. The log of the database only grows, so the durable part of it is
 * a prefix, and a shorter one after each earlier flush.
 */
import { cpSync, mkdirSync, rmSync, statSync } from "node:fs";
import { join } from "node:path";
import type { Pool, Pooled } from "./sqlite.ts";

/** Durable length of the log at a moment. */
interface Flushed {
  at: number;
  bytes: number;
}

export class Disk {
  readonly directory: string;
  readonly #pool: Pool;
  readonly #database: Pooled;
  /** Durable lengths, the newest last. */
  flushed: Flushed[] = [{ at: 0, bytes: 0 }];

  /** With an empty database. */
  constructor(directory: string, pool: Pool) {
    this.directory = directory;
    this.#pool = pool;
    this.#database = pool.take();
    mkdirSync(join(this.data, "rooms"), { recursive: true });
  }

  get database(): string {
    return this.#database.file;
  }

  get logBytes(): number {
    return statSync(this.#database.log, { throwIfNoEntry: false })?.size ?? 0;
  }

  /** All that the log had when it was `bytes` long is durable. */
  flush(at: number, bytes: number): void {
    if (bytes > (this.flushed.at(-1)?.bytes ?? 0)) this.flushed.push({ at, bytes });
  }

  get durableBytes(): number {
    return this.flushed.at(-1)?.bytes ?? 0;
  }

  /** Directory of the files of rooms. */
  get data(): string {
    return join(this.directory, "data");
  }

  /** Directory of its membership. */
  get cluster(): string {
    return join(this.data, "cluster");
  }

  /** Its daemon has ended; the database is as it was when the log was `bytes` long. */
  cut(bytes: number): void {
    this.#database.cut(bytes);
    this.flushed = this.flushed.filter((flushed) => flushed.bytes <= bytes);
  }

  /** Becomes the same as another one. */
  copy(other: Disk): void {
    this.#database.copy(other.#database, other.logBytes);
    this.flushed = [...other.flushed];
    rmSync(this.data, { recursive: true });
    cpSync(other.data, this.data, { recursive: true });
  }

  remove(): void {
    this.#pool.give(this.#database);
    rmSync(this.directory, { recursive: true, force: true });
  }
}
