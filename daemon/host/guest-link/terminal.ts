/** Terminals in a guest, over its link: the host's half of guest-agent/terminal. */
import { StreamError } from "../../../shared/agent-protocol/link.ts";
import {
  Channel,
  StreamErrorCode,
  type TerminalAttached,
  type TerminalAttachRequest,
  type TerminalCloseRequest,
  type TerminalEnd,
  type TerminalList,
  type TerminalListRequest,
  type TerminalOpened,
  type TerminalOpenRequest,
  type TerminalResize,
  type TerminalResized,
  type TerminalSkipped,
  type TerminalState,
  type TerminalWatching,
  type TerminalWatchRequest,
} from "../../../shared/agent-protocol/messages.ts";
import { MAX_ROWS_OR_COLS } from "../../../shared/api/terminals.ts";
import { wallMs } from "../../core/clock.ts";
import { within } from "../../core/concurrency/published.ts";
import { answerOf } from "./answer.ts";
import type { GuestLink } from "./handshake.ts";

const ANSWER_MS = 10_000;
/** HUP, five seconds, KILL, and the time that a busy guest needs for them. */
const CLOSE_MS = 30_000;
const MAX_LISTED = 64;
const SIGNAL = /^[A-Z][A-Z0-9+-]{0,15}$/;
const MAX_CHARACTERS = 1024;
/** An agent that announces more marks ahead of the output than this is faulty. */
const MAX_MARKS = 1024;
/** More than the output of any terminal; sums stay exact. */
const MAX_OFFSET = 2 ** 50;

/** Starts a command in a separate terminal. Rejects with StreamError if the agent refuses it. */
export async function openTerminal(
  link: GuestLink,
  spec: Omit<TerminalOpenRequest, "method">,
): Promise<{ started_at_ms: number }> {
  const request: TerminalOpenRequest = { method: "terminal_open", ...spec };
  const opened = (await answerOf(link, request, ANSWER_MS, "opening a terminal")) as Partial<TerminalOpened>;
  return { started_at_ms: momentOf(opened.started_at_ms) };
}

/** Hangs up on a terminal, or ends everything that was started in it. Rejects with StreamError if it does not exist. */
export async function closeTerminal(link: GuestLink, terminal_id: string, everything: boolean): Promise<TerminalEnd> {
  const request: TerminalCloseRequest = { method: "terminal_close", terminal_id, everything };
  return readEnd(await answerOf(link, request, CLOSE_MS, "closing a terminal"));
}

/** All terminals of the guest, according to its agent; the result has a valid shape, whatever the guest sends. */
export async function listTerminals(link: GuestLink): Promise<TerminalState[]> {
  const request: TerminalListRequest = { method: "terminal_list" };
  const list = (await answerOf(link, request, ANSWER_MS, "listing terminals")) as Partial<TerminalList>;
  if (!Array.isArray(list.terminals)) return [];
  return list.terminals.slice(0, MAX_LISTED).map(readState);
}

/** A client's attachment to a terminal. Backpressure: a slow reader makes the command wait. */
export interface AttachedTerminal {
  /** Offset of the first byte of `output`. */
  offset: number;
  rows: number;
  cols: number;
  /** The terminal's bytes, once; ends with the terminal, or when the host detaches. */
  output: AsyncIterable<Uint8Array>;
  /** Types these bytes; resolves once they are on their way. */
  write(bytes: Uint8Array): Promise<void>;
  resize(rows: number, cols: number): void;
  /** Sends a signal, by name, to the terminal's foreground group. */
  signal(name: string): void;
  /** Resolves when the command has ended and all its output was consumed; rejects with StreamError: taken_over, link_closed. */
  ended: Promise<TerminalEnd>;
  /** Detaches from the terminal, which keeps running. Idempotent. */
  detach(): void;
}

/** Attaches to a terminal. Rejects with StreamError: terminal_not_found, terminal_in_use, invalid_request. */
export async function attachTerminal(
  link: GuestLink,
  { terminal_id, since, takeover }: Omit<TerminalAttachRequest, "method">,
): Promise<AttachedTerminal> {
  const request: TerminalAttachRequest = { method: "terminal_attach", terminal_id, since, takeover };
  const stream = link.open(request);
  const received = Promise.withResolvers<Partial<TerminalAttached>>();
  stream.hear((event) => {
    const attached = Object(event) as Partial<TerminalAttached>;
    if (attached.type === "attached") received.resolve(attached);
  });
  const detach = () => stream.fail(StreamErrorCode.detached, "the host has detached");
  try {
    const refused = stream.finished.then(() => Promise.reject(new Error("the terminal ended before it was shown")));
    const { offset, rows, cols } = await within(Promise.race([received.promise, refused]), ANSWER_MS, "attaching");
    return {
      offset: countOf(offset),
      rows: sizeOf(rows),
      cols: sizeOf(cols),
      output: stream.read(Channel.stdout),
      write: async (bytes) => void (await stream.write(Channel.stdin, bytes)),
      resize: (toRows, toCols) => {
        const resize: TerminalResize = { type: "resize", rows: toRows, cols: toCols };
        stream.say(resize);
      },
      signal: (signal) => stream.say({ type: "signal", signal }),
      ended: stream.finished.then(readEnd),
      detach,
    };
  } catch (error) {
    detach();
    throw error;
  }
}

/** Output of a watched terminal, in order: the offset at which it continues, its size, and its bytes. */
export type WatchedOutput =
  | { type: "from"; offset: number }
  | { type: "size"; rows: number; cols: number }
  | { type: "bytes"; bytes: Uint8Array };

/** A watched terminal. There is no flow control: the guest does not wait for us, and output is shown as it arrives. */
export interface WatchedTerminal {
  /** Resolves when the command has ended and all its output was shown; rejects with StreamError: link_closed. */
  ended: Promise<TerminalEnd>;
  /** Stops watching. Again is nothing. */
  stop(): void;
}

/**
 * Watches a terminal; first shown are its start offset and its size. Rejects with StreamError: terminal_not_found, invalid_request,
 * unknown_method from an agent that is too old for it.
 */
export async function watchTerminal(
  link: GuestLink,
  { terminal_id, since }: Omit<TerminalWatchRequest, "method">,
  show: (shown: WatchedOutput) => void,
): Promise<WatchedTerminal> {
  const request: TerminalWatchRequest = { method: "terminal_watch", terminal_id, since };
  const stream = link.open(request);
  const started = Promise.withResolvers<void>();
  const marks: (TerminalSkipped | TerminalResized)[] = [];
  /** Offset of the next byte; -1 before the start. */
  let at = -1;
  /** Shows the marks that are due before that byte. */
  const settle = () => {
    for (let mark = marks[0]; mark && mark.offset <= at; mark = marks[0]) {
      marks.shift();
      if (mark.type === "resized") show({ type: "size", rows: mark.rows, cols: mark.cols });
      else if (mark.to > at) {
        at = mark.to;
        show({ type: "from", offset: at });
      }
    }
  };
  stream.hear((event) => {
    const mark = markOf(event);
    if (mark?.type === "watching" && at < 0) {
      at = mark.offset;
      show({ type: "from", offset: at });
      show({ type: "size", rows: mark.rows, cols: mark.cols });
      started.resolve();
    } else if (mark && mark.type !== "watching" && at >= 0) {
      marks.push(mark);
      if (marks.length > MAX_MARKS)
        stream.fail(StreamErrorCode.invalid_request, "too many marks for output that does not arrive");
      else settle();
    }
  });
  const showAll = async (): Promise<TerminalEnd> => {
    for await (const chunk of stream.read(Channel.stdout)) {
      for (let rest = chunk; rest.byteLength > 0; ) {
        const bytes = rest.subarray(0, (marks[0]?.offset ?? Number.POSITIVE_INFINITY) - at);
        rest = rest.subarray(bytes.byteLength);
        show({ type: "bytes", bytes });
        at += bytes.byteLength;
        settle();
      }
    }
    return readEnd(await stream.finished);
  };
  const stop = () => stream.fail(StreamErrorCode.detached, "the host stopped watching");
  try {
    const refused = stream.finished.then(() => Promise.reject(new Error("the terminal ended before it was shown")));
    await within(Promise.race([started.promise, refused]), ANSWER_MS, "watching");
    const ended = showAll();
    ended.catch(() => {});
    return { ended, stop };
  } catch (error) {
    stop();
    throw error;
  }
}

type Mark = TerminalWatching | TerminalSkipped | TerminalResized;

/** Null if it is not a mark. */
function markOf(event: unknown): Mark | null {
  const { type, offset, to, rows, cols } = Object(event) as Partial<Record<string, unknown>>;
  const at = Math.min(countOf(offset), MAX_OFFSET);
  if (type === "skipped") return { type, offset: at, to: Math.min(countOf(to), MAX_OFFSET) };
  if (type !== "watching" && type !== "resized") return null;
  return { type, offset: at, rows: sizeOf(rows), cols: sizeOf(cols) };
}

/** The agent's refusal of a request, or null if the agent did not answer at all. */
export function refusalOf(error: unknown): string | null {
  const lost: readonly string[] = [StreamErrorCode.link_closed, StreamErrorCode.internal];
  return error instanceof StreamError && !lost.includes(error.code) ? error.code : null;
}

function readState(value: unknown): TerminalState {
  const state = Object(value) as Partial<Record<keyof TerminalState, unknown>>;
  return {
    terminal_id: textOf(state.terminal_id),
    command: textOf(state.command),
    user: textOf(state.user),
    rows: sizeOf(state.rows),
    cols: sizeOf(state.cols),
    started_at_ms: momentOf(state.started_at_ms),
    attached: state.attached === true,
    offset: countOf(state.offset),
    end: state.end === null || state.end === undefined ? null : readEnd(state.end),
  };
}

function readEnd(value: unknown): TerminalEnd {
  const end = Object(value) as Partial<Record<keyof TerminalEnd, unknown>>;
  return {
    exit_code: Number.isSafeInteger(end.exit_code) ? (end.exit_code as number) : null,
    signal: typeof end.signal === "string" && SIGNAL.test(end.signal) ? end.signal : null,
    ended_at_ms: momentOf(end.ended_at_ms),
    reason: end.reason === "detached" || end.reason === "closed" ? end.reason : "exited",
  };
}

function textOf(value: unknown): string {
  return typeof value === "string" ? value.slice(0, MAX_CHARACTERS) : "";
}

function countOf(value: unknown): number {
  return typeof value === "number" && Number.isSafeInteger(value) && value >= 0 ? value : 0;
}

/** Rows or columns, within the range that a client can request. */
function sizeOf(value: unknown): number {
  return Math.min(Math.max(countOf(value), 1), MAX_ROWS_OR_COLS);
}

/** The time, if a date can hold it; else now. */
function momentOf(ms: unknown): number {
  return typeof ms === "number" && Number.isFinite(ms) && Math.abs(ms) < 8.64e15 ? ms : wallMs();
}
