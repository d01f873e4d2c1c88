/**
 * Reads a log backwards although the service reads it only forwards, by byte offsets: the end is found by binary search, and older parts
 * are read before the oldest loaded one.
 */
import { LOG_ANSWER_BYTES } from "../../../shared/console-log.ts";

export interface LogLine {
  offset: number;
  line: string;
}

/** Request to the service: whole lines from an offset on. Dropped lines before it are skipped. */
export type AskLog = (after: number, limit: number) => Promise<{ items: LogLine[]; next_after: number }>;

export interface LogPart {
  /** Byte offsets of the first line, and of the end of the last. */
  from: number;
  to: number;
  lines: LogLine[];
  /** Whether no older stored line exists. */
  isFirst: boolean;
}

/** Most lines of an answer. */
const LIMIT = 1000;
const PART_BYTES = 64 * 1024;
/** More than a log ever has: two segments of a MiB each and the last write. */
const FIRST_STEP = 64 * 1024;
/** A part of one-character lines takes many responses. */
const MAX_ANSWERS = 40;

/** Whether the log may continue after this response. */
const isFull = ({ items, next_after }: Awaited<ReturnType<AskLog>>, from: number) =>
  items.length === LIMIT || next_after - (items[0]?.offset ?? from) >= LOG_ANSWER_BYTES;

/** The newest part. */
export async function readEnd(ask: AskLog): Promise<LogPart> {
  const first = await ask(0, LIMIT);
  const begin = first.items[0]?.offset ?? 0;
  if (!isFull(first, 0)) return { from: begin, to: first.next_after, lines: first.items, isFirst: true };
  const end = await findEnd(ask, first.next_after);
  return await readPart(ask, begin, Math.max(begin, end - PART_BYTES), Number.POSITIVE_INFINITY);
}

/** The part before one. */
export async function readBefore(ask: AskLog, part: Pick<LogPart, "from">): Promise<LogPart> {
  const begin = (await ask(0, 1)).items[0]?.offset ?? part.from;
  return await readPart(ask, begin, Math.max(begin, part.from - PART_BYTES), part.from);
}

/** The lines after a part. */
export async function readAfter(ask: AskLog, { to }: Pick<LogPart, "to">): Promise<LogPart> {
  return { ...(await readPart(ask, to, to, Number.POSITIVE_INFINITY)), from: to };
}

/** An offset near the log's end. At `known`, lines still follow. */
async function findEnd(ask: AskLog, known: number): Promise<number> {
  const isBefore = async (offset: number) => (await ask(offset, 1)).items.length > 0;
  let low = known;
  let step = FIRST_STEP;
  while (await isBefore(low + step)) {
    low += step;
    step *= 2;
  }
  let high = low + step;
  while (high - low > PART_BYTES / 4) {
    const middle = Math.floor((low + high) / 2);
    if (await isBefore(middle)) low = middle;
    else high = middle;
  }
  return high;
}

async function readPart(ask: AskLog, begin: number, from: number, until: number): Promise<LogPart> {
  const lines: LogLine[] = [];
  let next = from;
  for (let answers = 0; answers < MAX_ANSWERS && next < until; answers++) {
    const startOffset = next;
    const answer = await ask(startOffset, LIMIT);
    lines.push(...answer.items.filter(({ offset }) => offset < until));
    next = answer.next_after;
    if (!isFull(answer, startOffset)) break;
  }
  // A read from the middle of a line starts with the rest of that line.
  const whole = from > begin && lines.length > 1 ? lines.slice(1) : lines;
  return { from: whole[0]?.offset ?? from, to: Math.min(next, until), lines: whole, isFirst: from <= begin };
}
