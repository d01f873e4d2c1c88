/**
 * The method `exec`, which runs a command that is not retained: an execution that is followed from its start, its streams on separate
 * channels, and forgotten when it ends.
 */
import { randomUUID } from "node:crypto";
import type { Stream } from "../../shared/agent-protocol/link.ts";
import { Channel, type ExecResult, type ExecStarted, StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { PieceDecoder } from "../../shared/agent-protocol/pieces.ts";
import { type Execution, StartError } from "./execution.ts";
import type { Executions } from "./executions.ts";
import { signalOf } from "./process-group.ts";
import { InvalidRequest, parseExecRequest } from "./request.ts";

const READ_BYTES = 64 * 1024;

/** Ends the stream with an ExecResult, or fails it. */
export async function runExec(executions: Executions, stream: Stream, request: object): Promise<void> {
  try {
    const parsed = parseExecRequest(request);
    // The request's own exec_id may be reused, so each run gets a unique one.
    const execution = executions.begin(
      { ...parsed, exec_id: `exec ${randomUUID()}` },
      { fingerprint: "", tag: "", isGenerated: true, isBrief: false },
    );
    try {
      await execution.started;
      await follow(stream, execution);
    } finally {
      execution.ended.finally(() => executions.forget(execution)).catch(() => {});
    }
  } catch (error) {
    if (error instanceof StartError) stream.fail(error.code, error.message);
    else if (error instanceof InvalidRequest) stream.fail(StreamErrorCode.invalid_request, error.message);
    else throw error;
  }
}

async function follow(stream: Stream, execution: Execution): Promise<void> {
  const { pid, started_at_ms } = execution.state;
  const started: ExecStarted = { type: "started", pid: pid ?? 0, at_ms: started_at_ms };
  stream.say(started);
  stream.hear((event) => {
    const signal = signalOf(event);
    if (signal !== null) execution.signal(signal);
  });
  void feed(stream, execution);
  const reader = await execution.journal.reader(0);
  stream.finished.catch(() => {}).finally(() => reader.close());
  const decoder = new PieceDecoder(0);
  for (let bytes = await reader.next(READ_BYTES); bytes; bytes = await reader.next(READ_BYTES)) {
    for (const piece of decoder.push(bytes)) await stream.write(piece.channel, piece.bytes);
  }
  const { exit_code, signal, timed_out, finished_at_ms } = execution.state;
  const result: ExecResult = {
    exit_code,
    signal,
    timed_out,
    started_at_ms,
    finished_at_ms: finished_at_ms ?? Date.now(),
  };
  stream.finish(result);
}

async function feed(stream: Stream, { input }: Execution): Promise<void> {
  for await (const bytes of stream.read(Channel.stdin)) await input.write(bytes);
  input.end();
}
