/**
 * The disk of a simulated host: a directory in memory with its database. The log of the database only grows, so the durable part of it is
 * a prefix, and a shorter one after each earlier flush.
 */
import { copyFileSync, cpSync, mkdirSync, readFileSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { join } from "node:path";

/** Durable length of the log at a moment. */
interface Flushed {
  at: number;
  bytes: number;
}

export class Disk {
  readonly directory: string;
  /** Durable lengths, the newest last. */
  readonly flushed: Flushed[];

  private constructor(directory: string, flushed: Flushed[]) {
    this.directory = directory;
    this.flushed = flushed;
  }

  /** With an empty database of the current schema. */
  static make(directory: string, schema: string): Disk {
    mkdirSync(directory, { recursive: true });
    const disk = new Disk(directory, [{ at: 0, bytes: 0 }]);
    copyFileSync(schema, disk.database);
    mkdirSync(join(disk.data, "rooms"), { recursive: true });
    return disk;
  }

  get database(): string {
    return join(this.directory, "roomd.db");
  }

  get #log(): string {
    return `${this.database}-wal`;
  }

  get logBytes(): number {
    return statSync(this.#log, { throwIfNoEntry: false })?.size ?? 0;
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

  /** The same with a database as it was when the log was `bytes` long. This one has no files of rooms any more, unless they are copied. */
  copy(directory: string, bytes: number, copiesFiles = false): Disk {
    mkdirSync(directory, { recursive: true });
    const copied = new Disk(
      directory,
      this.flushed.filter((flushed) => flushed.bytes <= bytes),
    );
    if (copiesFiles) cpSync(this.data, copied.data, { recursive: true });
    else renameSync(this.data, copied.data);
    copyFileSync(this.database, copied.database);
    if (bytes > 0) writeFileSync(`${copied.database}-wal`, readFileSync(this.#log).subarray(0, bytes));
    return copied;
  }

  remove(): void {
    rmSync(this.directory, { recursive: true, force: true });
  }
}
