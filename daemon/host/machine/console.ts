/**
 * The log of a guest's serial console: bounded, whatever the guest prints, and read by byte offset. A log is a directory with one or two
 * segments; a segment's name is the offset of its first byte. Reads from the console are rate-limited: the guest waits in the meantime.
 */
import { closeSync, mkdirSync, openSync, read, readdirSync, rmSync, statSync, writeSync } from "node:fs";
import { join } from "node:path";
import { promisify } from "node:util";
import type { Socket } from "bun";
import { LOG_ANSWER_BYTES, LOG_LINE_BYTES } from "../../../shared/console-log.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import type { Pieces } from "../../core/loop/index.ts";
import { Allowance } from "../guest-link/pace.ts";

const readBytes = promisify(read);

/** When a segment is full the next is started; only the last two are retained. */
const SEGMENT_BYTES = 1024 * 1024;

export class ConsoleLog {
  readonly #directory: string;
  #file: number;
  #begin: number;
  #size: number;
  #closed = false;

  /** Opens the log for writing, at its end. */
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
      // Bytes that no longer fit on the disk are not written.
      this.#size += writeSync(this.#file, bytes);
    } catch {
      // A full disk: the guest continues without this piece, and a later one may fit again.
    }
  }

  close(): void {
    if (this.#closed) return;
    this.#closed = true;
    closeSync(this.#file);
  }

  #nextSegment(): void {
    const begin = this.#begin + this.#size;
    // The new file is opened first: a closed descriptor's number may be another file's by the next write.
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

/** A booting kernel causes some thousand reads. With this limit a flood of single bytes costs a hundredth of a core. */
const READS = { perSecond: 500, atOnce: 20_000 } as const;

/** Handlers of a console's socket: each read goes to the log and to the callback. */
export function consoleHandlers(log: Pick<ConsoleLog, "append" | "close">, hear: (bytes: Uint8Array) => void) {
  const allowance = new Allowance(READS.perSecond, READS.atOnce);
  let pause: Timer | undefined;
  return {
    data: (socket: Pick<Socket, "pause" | "resume">, bytes: Uint8Array) => {
      log.append(bytes);
      hear(bytes);
      allowance.spend(1);
      const debtMs = allowance.debtMs();
      if (debtMs === 0 || pause !== undefined) return;
      socket.pause();
      pause = startTimer(() => {
        pause = undefined;
        socket.resume();
      }, debtMs);
    },
    close: () => {
      stopTimer(pause);
      log.close();
    },
    // The guest also runs without its console.
    error: () => {},
  };
}

export interface ConsoleLine {
  /** Byte offset of the line's beginning. */
  offset: number;
  line: string;
}

/** Size of one read. */
const WINDOW_BYTES = 128 * 1024;
/** Maximum bytes scanned for one answer: more than a log retains. */
const MAX_LOOKED_BYTES = 4 * SEGMENT_BYTES;
const CUT = "…";

/**
 * Whole lines from a byte offset on, and the offset after the last scanned line: up to `limit` that start with `prefix`, of 256 KiB. A long
 * line is truncated. Dropped segments are skipped. `pieces` yields the event loop.
 */
export async function readConsole(
  directory: string,
  after: number,
  { limit, prefix = "", pieces }: { limit: number; prefix?: string; pieces: Pieces },
): Promise<{ lines: ConsoleLine[]; next: number }> {
  const lines: ConsoleLine[] = [];
  /** Start of a line that continues in the next read. */
  let long: { begin: number; head: Buffer } | null = null;
  let next = after;
  for (let scanned = 0, left = LOG_ANSWER_BYTES; lines.length < limit && left > 0 && scanned <= MAX_LOOKED_BYTES; ) {
    const { begin, bytes, isEnd } = await readFrom(directory, next, WINDOW_BYTES);
    const turn = pieces.next();
    if (turn) await turn;
    const end = long === null ? 0 : bytes.indexOf(10) + 1;
    if (long !== null && end > 0) {
      const line = long.head.toString() + CUT;
      if (line.startsWith(prefix)) lines.push({ offset: long.begin, line });
      left -= LOG_LINE_BYTES;
      long = null;
    }
    const found = linesIn(long === null ? bytes.subarray(end) : NOTHING, {
      limit: limit - lines.length,
      prefix,
      bytes: left,
    });
    lines.push(...found.lines.map(({ offset, line }) => ({ offset: begin + end + offset, line })));
    left -= found.bytes;
    const seen = end + found.seen;
    if (isEnd) return { lines, next: long?.begin ?? begin + seen };
    if (seen === 0) long ??= { begin, head: bytes.subarray(0, LOG_LINE_BYTES) };
    next = begin + (seen === 0 ? bytes.length : seen);
    scanned += next - begin;
  }
  return { lines, next: long?.begin ?? next };
}

const NOTHING = Buffer.alloc(0);

interface LogPart {
  /** Byte offset of the first byte. */
  begin: number;
  bytes: Buffer;
  /** Whether the log ends with these bytes. */
  isEnd: boolean;
}

/**
 * Places are those in `bytes`; `seen` is the end of the last whole line. Unwanted lines are skipped by the search for the next wanted one:
 * each of 2 Mi empty lines would cost as much as a full one.
 */
function linesIn(
  bytes: Buffer,
  most: { limit: number; prefix: string; bytes: number },
): { lines: ConsoleLine[]; bytes: number; seen: number } {
  const lines: ConsoleLine[] = [];
  const prefix = Buffer.from(most.prefix);
  const following = Buffer.from(`\n${most.prefix}`);
  let seen = 0;
  let taken = 0;
  while (lines.length < most.limit && taken < most.bytes) {
    if (!bytes.subarray(seen, seen + prefix.length).equals(prefix)) {
      const before = bytes.indexOf(following, seen);
      if (before < 0) {
        seen = Math.max(seen, bytes.lastIndexOf(10) + 1);
        break;
      }
      seen = before + 1;
    }
    const end = bytes.indexOf(10, seen);
    if (end < 0) break;
    const isCut = end - seen > LOG_LINE_BYTES;
    const text = bytes.subarray(seen, isCut ? seen + LOG_LINE_BYTES : end);
    const line = isCut ? text.toString() + CUT : text.toString().replace(/\r$/, "");
    lines.push({ offset: seen, line });
    taken += text.length;
    seen = end + 1;
  }
  return { lines, bytes: taken, seen };
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

/** Reads from an offset on; if the log is shorter, from its end on. */
async function readFrom(directory: string, after: number, most: number): Promise<LogPart> {
  // Opened in the same turn as the directory is read: a segment that is dropped in between is still read.
  const segments = segmentsOf(directory).map((segment) => ({
    ...segment,
    file: openSync(join(directory, segmentName(segment.begin)), "r"),
  }));
  try {
    const begin = Math.max(after, segments[0]?.begin ?? 0);
    let left = most;
    const parts: Buffer[] = [];
    for (const segment of segments) {
      const skip = Math.max(0, begin - segment.begin);
      const length = Math.min(left, segment.size - skip);
      if (length <= 0) continue;
      const { buffer, bytesRead } = await readBytes(segment.file, Buffer.allocUnsafe(length), 0, length, skip);
      parts.push(buffer.subarray(0, bytesRead));
      left -= length;
    }
    return { begin, bytes: parts.length === 1 && parts[0] ? parts[0] : Buffer.concat(parts), isEnd: left > 0 };
  } finally {
    for (const { file } of segments) closeSync(file);
  }
}
