/**
 * Owns the log of a guest's serial console: bounded, whatever the guest prints, and read by byte offset.
 * A log is a directory with one or two segments; a segment's name is the offset of its first byte.
 */
import { closeSync, mkdirSync, openSync, readdirSync, readSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";

/** When a segment is full the next begins, and the one before the last is dropped. */
const SEGMENT_BYTES = 1024 * 1024;

export class ConsoleLog {
  readonly #directory: string;
  #file: number;
  #begin: number;
  #size: number;
  #closed = false;

  /** Opens the log for writing, at the end of what is there. */
  constructor(directory: string) {
    mkdirSync(directory, { recursive: true, mode: 0o700 });
    this.#directory = directory;
    const last = segmentsOf(directory).at(-1);
    this.#begin = last?.begin ?? 0;
    this.#size = last?.size ?? 0;
    this.#file = openSync(this.#pathOf(this.#begin), "a", 0o600);
  }

  append(bytes: Uint8Array): void {
    if (this.#closed) return;
    try {
      if (this.#size >= SEGMENT_BYTES) this.#nextSegment();
      // What no longer fits on the disk is not written.
      this.#size += writeSync(this.#file, bytes);
    } catch {
      // A full disk: the guest goes on without this piece, and a later one may fit again.
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#file);
  }

  #nextSegment(): void {
    const begin = this.#begin + this.#size;
    // The new file first: a closed descriptor's number may be another file's by the next write.
    const next = openSync(this.#pathOf(begin), "a", 0o600);
    closeSync(this.#file);
    this.#file = next;
    this.#begin = begin;
    this.#size = 0;
    for (const old of segmentsOf(this.#directory).slice(0, -2)) rmSync(this.#pathOf(old.begin), { force: true });
  }

  #pathOf(begin: number): string {
    return join(this.#directory, segmentName(begin));
  }
}

export interface ConsoleLine {
  /** Byte offset of the line's beginning. */
  offset: number;
  line: string;
}

/**
 * Up to `limit` whole lines that are wanted, from a byte offset on, and the offset after what was looked at. What was dropped is
 * skipped.
 */
export function readConsole(
  directory: string,
  after: number,
  limit: number,
  isWanted: (line: string) => boolean,
): { lines: ConsoleLine[]; next: number } {
  const segments = segmentsOf(directory);
  const lines: ConsoleLine[] = [];
  const first = segments[0];
  if (!first) return { lines, next: after };
  let offset = Math.max(after, first.begin);
  const bytes = Buffer.concat(
    segments.map((segment) => readFrom(join(directory, segmentName(segment.begin)), segment, offset)),
  );
  let position = 0;
  while (lines.length < limit) {
    const end = bytes.indexOf(10, position);
    if (end < 0) break;
    const line = bytes.subarray(position, end).toString().replace(/\r$/, "");
    if (isWanted(line)) lines.push({ offset, line });
    offset += end + 1 - position;
    position = end + 1;
  }
  return { lines, next: offset };
}

interface Segment {
  begin: number;
  size: number;
}

function segmentName(begin: number): string {
  return `${String(begin).padStart(15, "0")}.log`;
}

function segmentsOf(directory: string): Segment[] {
  let names: string[];
  try {
    names = readdirSync(directory);
  } catch {
    return [];
  }
  return names
    .filter((name) => /^\d{15}\.log$/.test(name))
    .sort()
    .map((name) => ({ begin: Number.parseInt(name, 10), size: statSync(join(directory, name)).size }));
}

function readFrom(path: string, segment: Segment, offset: number): Buffer {
  const skip = Math.max(0, offset - segment.begin);
  if (skip >= segment.size) return Buffer.alloc(0);
  const bytes = Buffer.alloc(segment.size - skip);
  const file = openSync(path, "r");
  try {
    return bytes.subarray(0, readSync(file, bytes, 0, bytes.length, skip));
  } finally {
    closeSync(file);
  }
}
