/**
 * Frames that the recovery of a log discards (https://sqlite.org/fileformat2.html#walformat). Recovery ends at the first damaged frame,
 * without an error, and all later frames are lost. Frames behind that end with the salts of the log belong to it. One commit among them may
 * be one that was never acknowledged: a loss of power keeps any part of an unsynced write. Several are a sign of a damaged disk.
 */
import { fstatSync, readSync } from "node:fs";

const HEADER_BYTES = 32;
const FRAME_HEADER_BYTES = 24;
const PAGE_SIZE_AT = 8;
const SALTS_AT = 16;
const FRAME_SALTS_AT = 8;
const SALTS_BYTES = 8;
/** Offset of the database size after a commit; 0 in all frames except the last of a transaction. */
const COMMIT_AT = 4;

/** Length of a log with this number of frames. */
export const lengthOf = (frames: number, pageSize: number): number =>
  frames === 0 ? 0 : HEADER_BYTES + frames * (FRAME_HEADER_BYTES + pageSize);

export interface Discarded {
  frames: number;
  commits: number;
}

/** `log`: descriptor of a log of which recovery has kept `kept` frames. */
export function discardedFrames(log: number, kept: number): Discarded {
  const found = { frames: 0, commits: 0 };
  const { size } = fstatSync(log);
  const header = Buffer.alloc(HEADER_BYTES);
  if (size < HEADER_BYTES || readSync(log, header, 0, HEADER_BYTES, 0) < HEADER_BYTES) return found;
  const salts = header.subarray(SALTS_AT, SALTS_AT + SALTS_BYTES);
  const frameBytes = FRAME_HEADER_BYTES + header.readUInt32BE(PAGE_SIZE_AT);
  const frame = Buffer.alloc(FRAME_HEADER_BYTES);
  for (let at = HEADER_BYTES + kept * frameBytes; at + frameBytes <= size; at += frameBytes) {
    readSync(log, frame, 0, FRAME_HEADER_BYTES, at);
    if (!frame.subarray(FRAME_SALTS_AT, FRAME_SALTS_AT + SALTS_BYTES).equals(salts)) continue;
    found.frames++;
    if (frame.readUInt32BE(COMMIT_AT) !== 0) found.commits++;
  }
  return found;
}
