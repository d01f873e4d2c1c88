/** Requests about executions, over a guest's link: the host's half of guest-agent/exec. */
import { type Stream, StreamError } from "../../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecEndedRequest,
  type ExecFollowRequest,
  type ExecListRequest,
  type ExecNoteRequest,
  type ExecReport,
  type ExecStartRequest,
  type ExecState,
  type ExecStdinRequest,
  StreamErrorCode,
} from "../../../shared/agent-protocol/messages.ts";
import { type Piece, PieceDecoder, PieceError } from "../../../shared/agent-protocol/pieces.ts";
import { startTimer, stopTimer } from "../../core/clock.ts";
import { readList, readReport, readState } from "./exec-state.ts";
import type { GuestLink } from "./handshake.ts";
import { priceOfPieces } from "./pace.ts";
import { afterGuestMs, type PausableDeadlines } from "./pausable-deadlines.ts";

/** For immediate answers of an agent, on a busy guest. */
const ANSWER_MS = 15_000;
/** TERM, five seconds, KILL, and the time that a busy guest needs for them. */
const END_MS = 30_000;
/** Timeout for the close of an input after its caller has left. */
const CLOSING_MS = 1_000;

/** The output stream of an execution. */
export interface Following {
  /** The execution when the stream began. */
  execution: ExecState;
  /** Whether it may be an earlier request's; for a running execution this is known only at its end. */
  existing: boolean;
  /** Pieces as they arrive, in order and without a gap; the guest waits while they are not consumed. Rejects with StreamError. */
  pieces(): AsyncGenerator<readonly Piece[]>;
  /** The execution after its last piece of output. Rejects with StreamError. */
  finished: Promise<ExecState>;
  /** Wants no more of it. */
  close(): void;
  /** Pausable deadlines in the guest's own time on this connection. */
  standstill: PausableDeadlines;
}

/** Starts an execution, or returns the one started by an earlier attempt of the same request. Rejects with StreamError. */
export async function startInGuest(
  link: GuestLink,
  request: Omit<ExecStartRequest, "method" | "follow">,
): Promise<{ execution: ExecState; existing: boolean }> {
  const start: ExecStartRequest = { method: "exec_start", ...request, follow: false };
  const report = await inTime(link, link.open(start), ANSWER_MS);
  return { execution: readReport(report), existing: (report as Partial<ExecReport>).existing === true };
}

/** Starts an execution as `startInGuest`, and follows its output from the first piece. */
export function startFollowed(
  link: GuestLink,
  request: Omit<ExecStartRequest, "method" | "follow">,
): Promise<Following> {
  // A caller with standard input waits for the report that the command runs.
  const start: ExecStartRequest = { method: "exec_start", ...request, follow: true, brief: !request.stdin };
  return following(link, link.open(start), 0);
}

/** Follows the output after a piece. Rejects with StreamError. */
export function followInGuest(link: GuestLink, request: Omit<ExecFollowRequest, "method">): Promise<Following> {
  const follow: ExecFollowRequest = { method: "exec_follow", ...request };
  return following(link, link.open(follow), request.after);
}

export function getInGuest(link: GuestLink, exec_id: string): Promise<ExecState> {
  return answered(link, openNamed(link, "exec_get", exec_id), ANSWER_MS);
}

export async function listInGuest(link: GuestLink, after: number, limit: number): Promise<ExecState[]> {
  const list: ExecListRequest = { method: "exec_list", after, limit };
  return readList(await inTime(link, link.open(list), ANSWER_MS));
}

export function signalInGuest(link: GuestLink, exec_id: string, signal: string): Promise<ExecState> {
  return answered(link, openNamed(link, "exec_signal", exec_id, { signal }), ANSWER_MS);
}

/** Resolves once nothing of it remains. */
export function endInGuest(link: GuestLink, exec_id: string): Promise<ExecState> {
  return answered(link, openNamed(link, "exec_end", exec_id), END_MS);
}

export function noteInGuest(link: GuestLink, exec_id: string, note: string): Promise<ExecState> {
  const request: ExecNoteRequest = { method: "exec_note", exec_id, note };
  return answered(link, link.open(request), ANSWER_MS);
}

/** Resolves once the command's pipe has accepted the bytes, without a timeout; `signal` cancels. Rejects with its reason then. */
export async function feedInGuest(
  link: GuestLink,
  request: Omit<ExecStdinRequest, "method">,
  bytes: Uint8Array,
  signal: AbortSignal,
): Promise<ExecState> {
  const feed: ExecStdinRequest = { method: "exec_stdin", ...request };
  const stream = link.open(feed);
  let closing: Timer | undefined;
  const giveUp = () => stream.fail(StreamErrorCode.link_closed, "the wait was cancelled");
  // Clients disconnect when the command ends, while the close of its input is in progress: the close still succeeds.
  const leave = () => {
    if (bytes.byteLength > 0) giveUp();
    else closing = startTimer(giveUp, CLOSING_MS);
  };
  signal.addEventListener("abort", leave, { once: true });
  try {
    if (signal.aborted) leave();
    await stream.write(Channel.stdin, bytes);
    stream.endChannel(Channel.stdin);
    return readReport(await stream.finished);
  } catch (error) {
    throw signal.aborted ? signal.reason : error;
  } finally {
    stopTimer(closing);
    signal.removeEventListener("abort", leave);
  }
}

/** Executions that have ended and are not settled; resolves once there are any. */
export async function endedInGuest(link: GuestLink, settled: readonly string[]): Promise<ExecState[]> {
  const request: ExecEndedRequest = { method: "exec_ended", settled: [...settled] };
  return readList(await link.open(request).finished);
}

async function following(link: GuestLink, stream: Stream, after: number): Promise<Following> {
  const started = Promise.withResolvers<ExecState>();
  stream.hear((event) => {
    const { type, execution } = event as { type?: unknown; execution?: unknown };
    if (type === "following") started.resolve(readState(execution));
  });
  // Until its report states otherwise: a running execution is announced before its report.
  let existing = true;
  const finished = stream.finished.then((report) => {
    existing = (report as Partial<ExecReport> | null)?.existing !== false;
    return readReport(report);
  });
  // An execution that is over may send its end alone; any other stream that ends before `following` has ended too early.
  const tooEarly = new StreamError({ code: StreamErrorCode.internal, message: "the guest's answer ended too early" });
  finished.then(
    (finalState) => (finalState.state === "running" ? started.reject(tooEarly) : started.resolve(finalState)),
    started.reject,
  );
  const giveUp = afterGuestMs(link.standstill, ANSWER_MS, () =>
    stream.fail(StreamErrorCode.link_closed, "the guest agent did not answer"),
  );
  const execution = await started.promise.finally(giveUp);
  return {
    execution,
    get existing() {
      return existing;
    },
    pieces: () => piecesOf(link, stream, after <= execution.last_seq ? after : null),
    finished,
    close: () => stream.fail(StreamErrorCode.link_closed, "the reader has gone"),
    standstill: link.standstill,
  };
}

async function* piecesOf(link: GuestLink, stream: Stream, after: number | null): AsyncGenerator<readonly Piece[]> {
  const decoder = new PieceDecoder(after);
  try {
    for await (const bytes of stream.read(Channel.output)) {
      const pieces = decoder.push(bytes);
      link.charge(priceOfPieces(pieces.length));
      if (pieces.length > 0) yield pieces;
    }
  } catch (error) {
    if (error instanceof PieceError) stream.fail(StreamErrorCode.internal, error.message);
    throw error;
  } finally {
    // A reader that stops must not leave the guest waiting.
    stream.fail(StreamErrorCode.link_closed, "the reader has gone");
  }
}

function openNamed(link: GuestLink, method: string, exec_id: string, more: object = {}): Stream {
  return link.open({ method, exec_id, ...more } as { method: string });
}

async function answered(link: GuestLink, stream: Stream, deadlineMs: number): Promise<ExecState> {
  return readReport(await inTime(link, stream, deadlineMs));
}

/** An agent that does not answer, by fault or by malice, blocks no caller forever. */
async function inTime(link: GuestLink, stream: Stream, deadlineMs: number): Promise<unknown> {
  const giveUp = afterGuestMs(link.standstill, deadlineMs, () =>
    stream.fail(StreamErrorCode.link_closed, "the guest agent did not answer"),
  );
  return await stream.finished.finally(giveUp);
}
