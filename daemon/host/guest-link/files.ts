/** The host's requests about files of a guest, over the guest's link: counterpart of guest-agent/files. All reject with StreamError. */
import {
  FILE_READ_WINDOW_BYTES,
  FILE_WINDOW_BYTES,
  type FileAnswer,
  type FileChange,
  type FileEntry,
  type FileListRequest,
  type FileMkdirRequest,
  type FileMoveRequest,
  type FileReadRequest,
  type FileRemoveRequest,
  type FileStatRequest,
  type FileTake,
  type FileWatchRequest,
  type FileWriteRequest,
} from "../../../shared/agent-protocol/files.ts";
import { isWindow, type Stream, StreamError } from "../../../shared/agent-protocol/link.ts";
import { Channel, StreamErrorCode } from "../../../shared/agent-protocol/messages.ts";
import { linesOf, readAnswer, readChange, readEntry } from "./file-entry.ts";
import type { GuestLink } from "./handshake.ts";
import { afterGuestMs } from "./pausable-deadlines.ts";

/** In the guest's own time, for an immediate answer, and for each step of a transfer. */
const ANSWER_MS = 30_000;
/** Timeout for writing a large file to a slow disk, copying a tree to another file system, or removing one. */
const LONG_MS = 600_000;
/** Bytes of a list per point of the guest's rate allowance, since all are parsed. */
const BYTES_PER_POINT = 256;

type Plain<Request extends { method: string }> = Omit<Request, "method">;

export async function statInGuest(link: GuestLink, request: Plain<FileStatRequest>): Promise<FileEntry> {
  return (await answered(link, { method: "file_stat", ...request }, ANSWER_MS)).entry;
}

export function makeDirectoryInGuest(link: GuestLink, request: Plain<FileMkdirRequest>): Promise<Required<FileAnswer>> {
  return answered(link, { method: "file_mkdir", ...request }, ANSWER_MS);
}

export async function moveInGuest(link: GuestLink, request: Plain<FileMoveRequest>): Promise<FileEntry> {
  return (await answered(link, { method: "file_move", ...request }, LONG_MS)).entry;
}

export async function removeInGuest(link: GuestLink, request: Plain<FileRemoveRequest>): Promise<void> {
  await inTime(link, link.open({ method: "file_remove", ...request } as FileRemoveRequest), LONG_MS);
}

export interface ListedPage {
  entries: FileEntry[];
  more: boolean;
}

/** Lists at most `limit` entries, whatever the guest sends. */
export async function listInGuest(link: GuestLink, request: Plain<FileListRequest>): Promise<ListedPage> {
  const stream = link.open({ method: "file_list", ...request } as FileListRequest);
  const giveUp = deadline(link, stream, LONG_MS);
  const entries: FileEntry[] = [];
  try {
    for await (const lines of linesOf(charged(link, stream))) {
      if (entries.length + lines.length > request.limit)
        throw new Error("the guest listed more entries than requested");
      entries.push(...lines.map(readEntry));
    }
    const { more } = Object(await stream.finished) as { more?: unknown };
    return { entries, more: more === true };
  } catch (error) {
    throw asStreamError(error);
  } finally {
    giveUp();
    stream.fail(StreamErrorCode.detached, "the listing was cancelled");
  }
}

/** A guest's file, open for reading. */
export interface OpenGuestFile {
  entry: FileEntry;
  /** A range of the file, once: exactly `length` bytes, or the stream fails. */
  take(offset: number, length: number): ReadableStream<Uint8Array>;
  /** Resolves once no read of the file remains. */
  over: Promise<void>;
  close(): void;
}

export async function openInGuest(link: GuestLink, path: string): Promise<OpenGuestFile> {
  const request: FileReadRequest = { method: "file_read", path };
  const stream = link.open(request);
  const close = () => stream.fail(StreamErrorCode.detached, "the file was closed");
  try {
    const entry = readEntry((await said(link, stream, "opened")).entry);
    return {
      entry,
      take: (offset, length) => {
        const take: FileTake = { type: "take", offset, length, window_bytes: FILE_READ_WINDOW_BYTES };
        stream.widenIncoming(Channel.stdout, FILE_READ_WINDOW_BYTES);
        stream.say(take);
        return partOf(link, stream, length);
      },
      over: stream.finished.then(
        () => {},
        () => {},
      ),
      close,
    };
  } catch (error) {
    close();
    throw asStreamError(error);
  }
}

/** `fill` passes the bytes on and waits after each write; if it rejects, the guest keeps none of them. */
export async function writeInGuest(
  link: GuestLink,
  request: Plain<FileWriteRequest>,
  fill: (write: (bytes: Uint8Array) => Promise<void>, over: AbortSignal) => Promise<void>,
): Promise<Required<FileAnswer>> {
  const stream = link.open({ method: "file_write", ...request } as FileWriteRequest);
  const over = new AbortController();
  // If the guest refuses the rest, as on a full disk, the body is read no further.
  const ended = stream.finished.catch((error: unknown) => {
    over.abort(error);
    throw error;
  });
  ended.catch(() => {});
  try {
    const { window_bytes } = await said(link, stream, "writable");
    if (isWindow(window_bytes, FILE_WINDOW_BYTES)) stream.widenOutgoing(Channel.stdin, window_bytes);
    await fill(async (bytes) => {
      const giveUp = deadline(link, stream, ANSWER_MS);
      const sent = await stream.write(Channel.stdin, bytes).finally(giveUp);
      if (!sent) await ended;
    }, over.signal);
    stream.endChannel(Channel.stdin);
    const giveUp = deadline(link, stream, LONG_MS);
    return readAnswer(await ended.finally(giveUp));
  } catch (error) {
    if (over.signal.aborted) throw over.signal.reason;
    throw asStreamError(error);
  } finally {
    stream.fail(StreamErrorCode.detached, "the file request was cancelled");
  }
}

export interface GuestWatch {
  watch_id: string;
  /** Changes as they arrive; ends when the watched path is gone. */
  changes: AsyncGenerator<FileChange[]>;
  close(): void;
}

export async function watchInGuest(link: GuestLink, request: Plain<FileWatchRequest>): Promise<GuestWatch> {
  const stream = link.open({ method: "file_watch", ...request } as FileWatchRequest);
  const close = () => stream.fail(StreamErrorCode.detached, "the watch was closed");
  try {
    const { watch_id } = await said(link, stream, "watching");
    if (typeof watch_id !== "string" || !/^[\w-]{1,64}$/.test(watch_id)) throw new Error("the guest named no watch");
    return { watch_id, changes: changesOf(link, stream, close), close };
  } catch (error) {
    close();
    throw asStreamError(error);
  }
}

async function* changesOf(link: GuestLink, stream: Stream, close: () => void): AsyncGenerator<FileChange[]> {
  try {
    for await (const lines of linesOf(charged(link, stream))) yield lines.map(readChange);
    await stream.finished;
  } catch (error) {
    throw asStreamError(error);
  } finally {
    close();
  }
}

/** The incoming bytes, charged for the cost of parsing their lines. */
async function* charged(link: GuestLink, stream: Stream): AsyncGenerator<Uint8Array> {
  for await (const bytes of stream.read(Channel.output)) {
    link.charge(1 + bytes.byteLength / BYTES_PER_POINT);
    yield bytes;
  }
}

/** Exactly `length` bytes. The guest waits for a reader that is slow; the host does not wait for a guest that is silent. */
function partOf(link: GuestLink, stream: Stream, length: number): ReadableStream<Uint8Array> {
  const chunks = stream.read(Channel.stdout);
  let left = length;
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        const giveUp = deadline(link, stream, ANSWER_MS);
        const next = await chunks.next().finally(giveUp);
        if (next.done) {
          await stream.finished;
          if (left > 0) throw new Error("the file became shorter while it was read");
          controller.close();
          return;
        }
        left -= next.value.byteLength;
        if (left < 0) {
          stream.fail(StreamErrorCode.internal, "more bytes than requested");
          throw new Error("the guest sent more bytes than requested");
        }
        controller.enqueue(next.value);
      },
      cancel: () => stream.fail(StreamErrorCode.detached, "the reader has gone"),
    },
    { highWaterMark: 0 },
  );
}

/** Resolves with the first event of this type. */
async function said(link: GuestLink, stream: Stream, type: string): Promise<Record<string, unknown>> {
  const received = Promise.withResolvers<Record<string, unknown>>();
  stream.hear((event) => {
    const message = Object(event) as Record<string, unknown>;
    if (message.type === type) received.resolve(message);
  });
  const early = () => Promise.reject(new Error("the guest's answer ended too early"));
  const giveUp = deadline(link, stream, ANSWER_MS);
  return await Promise.race([received.promise, stream.finished.then(early)]).finally(giveUp);
}

async function answered(link: GuestLink, request: { method: string }, ms: number): Promise<Required<FileAnswer>> {
  try {
    return readAnswer(await inTime(link, link.open(request), ms));
  } catch (error) {
    throw asStreamError(error);
  }
}

async function inTime(link: GuestLink, stream: Stream, ms: number): Promise<unknown> {
  const giveUp = deadline(link, stream, ms);
  return await stream.finished.finally(giveUp);
}

/** Fails the stream at a deadline, so that an unresponsive agent does not block a caller for ever. */
function deadline(link: GuestLink, stream: Stream, ms: number): () => void {
  return afterGuestMs(link.standstill, ms, () =>
    stream.fail(StreamErrorCode.link_closed, "the guest agent did not answer"),
  );
}

/** A malformed answer is the guest's fault, not a bug of the host. */
function asStreamError(error: unknown): unknown {
  if (error instanceof StreamError || !(error instanceof Error) || error.name !== "Error") {
    return error instanceof SyntaxError
      ? new StreamError({ code: StreamErrorCode.internal, message: error.message })
      : error;
  }
  return new StreamError({ code: StreamErrorCode.internal, message: error.message });
}
