/**
 * The method `file_read`: a regular file, or a part of it. A small file is read before it is described, so that a file that the kernel generates at
 * reading, as below /proc, has its real size.
 */
import { constants } from "node:fs";
import { type FileHandle, open } from "node:fs/promises";
import { FILE_READ_WINDOW_BYTES, type FileOpened } from "../../shared/agent-protocol/files.ts";
import { isWindow, type Stream } from "../../shared/agent-protocol/link.ts";
import { Channel } from "../../shared/agent-protocol/messages.ts";
import { entryAt, entryOf } from "./entry.ts";
import { FileError } from "./file-error.ts";
import { parsePath } from "./path.ts";

const PART_BYTES = 256 * 1024;
/** Of a larger file, read at a time: each read is a turn of a thread. */
const SENT_BYTES = 512 * 1024;
/** A file with size 0 that has more content than this is refused. */
const MAX_MADE_UP_BYTES = 4 * 1024 * 1024;

export async function readFile(stream: Stream, request: object): Promise<void> {
  const path = parsePath((request as { path?: unknown }).path);
  // Before the open: opening a device has side effects.
  requireRegular((await entryAt(path, true)).type);
  const file = await open(path, constants.O_RDONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
  try {
    const entry = entryOf(path, await file.stat({ bigint: true }));
    requireRegular(entry.type);
    const whole = entry.size_bytes <= PART_BYTES ? await readWhole(file, entry.size_bytes) : null;
    const taken = takenBy(stream);
    const opened: FileOpened = {
      type: "opened",
      entry: whole === null ? entry : { ...entry, size_bytes: whole.byteLength },
    };
    stream.say(opened);
    const part = await taken;
    if (part === null) return;
    const sent = whole
      ? await stream.write(Channel.stdout, whole.subarray(part.offset, part.offset + part.length))
      : await send(stream, file, part);
    if (!sent) return;
    stream.endChannel(Channel.stdout);
    stream.finish(null);
  } finally {
    await file.close();
  }
}

function requireRegular(type: string): void {
  if (type === "directory") throw new FileError("EISDIR");
  if (type !== "file") throw new FileError("ENXIO");
}

interface ReadRange {
  offset: number;
  length: number;
}

/** The range that the host requests; null once it needs nothing. */
function takenBy(stream: Stream): Promise<ReadRange | null> {
  const { promise, resolve } = Promise.withResolvers<ReadRange | null>();
  stream.hear((event) => {
    const { type, offset, length, window_bytes } = Object(event) as Record<string, unknown>;
    if (type !== "take") return;
    if (isWindow(window_bytes, FILE_READ_WINDOW_BYTES)) stream.widenOutgoing(Channel.stdout, window_bytes);
    resolve({ offset: Number(offset), length: Number(length) });
  });
  const end = () => resolve(null);
  stream.finished.then(end, end);
  return promise;
}

async function readWhole(file: FileHandle, size: number): Promise<Buffer> {
  const parts: Buffer[] = [];
  let total = 0;
  for (;;) {
    // One byte more than its size: a file that grows, or has no size, is read to its end.
    const buffer = Buffer.allocUnsafe(parts.length === 0 ? size + 1 : PART_BYTES);
    const { bytesRead } = await file.read(buffer, 0, buffer.byteLength, total);
    if (bytesRead === 0) return parts.length === 1 ? (parts[0] as Buffer) : Buffer.concat(parts);
    parts.push(buffer.subarray(0, bytesRead));
    total += bytesRead;
    if (total > MAX_MADE_UP_BYTES) throw new FileError("EFBIG");
  }
}

/** Reads the next part while one is sent. Returns whether all bytes were sent: a file that was truncated during the read has fewer. */
async function send(stream: Stream, file: FileHandle, { offset, length }: ReadRange): Promise<boolean> {
  const buffers = [Buffer.allocUnsafeSlow(SENT_BYTES), Buffer.allocUnsafeSlow(SENT_BYTES)];
  const end = offset + length;
  let at = offset;
  let turn = 0;
  const next = async () => {
    const buffer = buffers[turn++ % 2] as Buffer;
    const { bytesRead } = await file.read(buffer, 0, Math.min(SENT_BYTES, end - at), at);
    at += bytesRead;
    return buffer.subarray(0, bytesRead);
  };
  let part = length > 0 ? await next() : Buffer.alloc(0);
  while (part.byteLength > 0) {
    const [sent, following] = await Promise.all([
      stream.write(Channel.stdout, part),
      at < end ? next() : Buffer.alloc(0),
    ]);
    if (!sent) return false;
    part = following;
  }
  return true;
}
