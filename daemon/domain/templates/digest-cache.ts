/**
 * Cache of verified template files and their metadata at that time. It outlives the daemon but not the host's boot: a restarted daemon need
 * not read half a gigabyte before its first guest, and a host that lost power may have lost earlier writes.
 */
import { existsSync, readFileSync, renameSync, statSync, writeFileSync } from "node:fs";
import { Type } from "@sinclair/typebox";
import { Value } from "@sinclair/typebox/value";
import type { Log } from "../../core/log.ts";
import { errnoOf } from "../../core/service-error.ts";
import { BOOT_ID } from "../../host/boot.ts";

const kept = Type.Object({ boot_id: Type.String(), looks: Type.Record(Type.String(), Type.String()) });

export class DigestCache {
  readonly #file: string;
  readonly #log: Log;
  readonly #looks: Map<string, string>;

  constructor(file: string, log: Log) {
    this.#file = file;
    this.#log = log;
    this.#looks = new Map(Object.entries(this.#read()));
  }

  /** Whether the file is unchanged since it was verified. */
  has(path: string): boolean {
    return this.#looks.get(path) === lookOf(path);
  }

  /** Notes that the file was verified; `look` is from before it was read. */
  add(path: string, look: string): void {
    this.#looks.set(path, look);
    for (const cachedPath of this.#looks.keys()) if (!existsSync(cachedPath)) this.#looks.delete(cachedPath);
    const draft = `${this.#file}.${process.pid}`;
    try {
      writeFileSync(draft, JSON.stringify({ boot_id: BOOT_ID, looks: Object.fromEntries(this.#looks) }));
      renameSync(draft, this.#file);
    } catch (error) {
      // The file is then verified again after the next start.
      this.#log.warn("failed to write the cache of verified templates", { error: String(error) });
    }
  }

  #read(): Record<string, string> {
    try {
      const value: unknown = JSON.parse(readFileSync(this.#file, "utf8"));
      return Value.Check(kept, value) && value.boot_id === BOOT_ID ? value.looks : {};
    } catch (error) {
      if (errnoOf(error) !== "ENOENT")
        this.#log.warn("failed to read the cache of verified templates", { error: String(error) });
      return {};
    }
  }
}

/** Changes whenever the file's content may have. Sandboxes hard-link the file, which changes its other metadata. */
export function lookOf(path: string): string {
  const { size, mtimeMs, dev, ino } = statSync(path);
  return [size, mtimeMs, dev, ino].join(" ");
}
