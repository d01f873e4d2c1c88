/** Handlers of the execution methods in messages.ts, one per method. Each ends its stream. */
import type { Stream } from "../../shared/agent-protocol/link.ts";
import {
  Channel,
  type ExecFollowing,
  type ExecList,
  type ExecReport,
  StreamErrorCode,
} from "../../shared/agent-protocol/messages.ts";
import { type Execution, StartError } from "./execution.ts";
import type { Executions } from "./executions.ts";
import { HistoryGone } from "./kept-output.ts";
import { isSignal } from "./process-group.ts";
import { InvalidRequest, parseStartRequest, shortText, wholeNumber } from "./request.ts";

const MAX_LISTED = 64;

type Fields = Record<string, unknown>;
type Handler = (stream: Stream, request: Fields) => Promise<void> | void;

export function executionMethods(executions: Executions) {
  const handlers = {
    exec_start: async (stream, request) => {
      const { fingerprint, tag, generated, follow, brief, ...command } = parseStartRequest(request);
      const { execution, existing } = await executions.start(
        { ...command, method: "exec" },
        { fingerprint, tag, isGenerated: generated, isBrief: brief },
      );
      if (follow) return await send(stream, execution, { after: 0, follow, brief, existing });
      report(stream, execution, existing);
    },
    exec_follow: async (stream, { exec_id, after, follow, aside }) => {
      const how = { follow: follow === true, brief: false, aside: aside === true };
      const from = { after: wholeNumber("after", after), ...how };
      await send(stream, executions.get(exec_id), from);
    },
    exec_get: (stream, { exec_id }) => report(stream, executions.get(exec_id)),
    exec_list: (stream, { after, limit }) => {
      const most = Math.min(wholeNumber("limit", limit), MAX_LISTED);
      const listed: ExecList = { executions: executions.list(wholeNumber("after", after), most) };
      stream.finish(listed);
    },
    exec_stdin: (stream, { exec_id, offset, eof }) =>
      take(stream, executions.get(exec_id), offset === null ? null : wholeNumber("offset", offset), eof === true),
    exec_signal: async (stream, { exec_id, signal }) => {
      const execution = executions.get(exec_id);
      if (!isSignal(signal)) throw new InvalidRequest("signal must be the name of a signal");
      await execution.started;
      if (!execution.signal(signal)) throw hasEnded(execution);
      report(stream, execution);
    },
    exec_end: async (stream, { exec_id }) => {
      const execution = executions.get(exec_id);
      await execution.started;
      await execution.end();
      report(stream, execution);
    },
    exec_note: (stream, { exec_id, note }) => {
      const execution = executions.get(exec_id);
      execution.note = shortText("note", note);
      report(stream, execution);
    },
    exec_ended: async (stream, { settled }) => {
      if (!Array.isArray(settled)) throw new InvalidRequest("settled must be a list");
      const ended: ExecList = { executions: await executions.ended(settled.map(String), stream.finished) };
      stream.finish(ended);
    },
  } satisfies Record<string, Handler>;

  const refusing =
    (handler: Handler): ((stream: Stream, request: object) => Promise<void>) =>
    async (stream, request) => {
      try {
        await handler(stream, request as Fields);
      } catch (error) {
        if (error instanceof StartError) stream.fail(error.code, error.message);
        else if (error instanceof InvalidRequest) stream.fail(StreamErrorCode.invalid_request, error.message);
        else if (error instanceof HistoryGone) stream.fail(StreamErrorCode.history_gone, error.message);
        else throw error;
      }
    };
  const names = Object.keys(handlers) as (keyof typeof handlers)[];
  return Object.fromEntries(names.map((name) => [name, refusing(handlers[name])])) as Record<
    keyof typeof handlers,
    ReturnType<typeof refusing>
  >;
}

interface SendOptions {
  after: number;
  follow: boolean;
  brief: boolean;
  existing?: boolean;
  aside?: boolean;
}

/** Sends output with backpressure, then the state. A stream that closes ends the reader. */
async function send(
  stream: Stream,
  execution: Execution,
  { after, follow, brief, existing, aside }: SendOptions,
): Promise<void> {
  const reader = await execution.journal.reader(after, aside);
  const close = () => reader.close();
  stream.finished.then(close, close);
  try {
    let isReported = false;
    const tell = () => {
      const following: ExecFollowing = { type: "following", execution: execution.state };
      if (!isReported) stream.say(following);
      isReported = true;
    };
    if (brief) execution.lasts.then(tell);
    else tell();
    const push = (bytes: Uint8Array) => {
      tell();
      return stream.push(Channel.output, bytes);
    };
    while (await reader.pass(follow, push)) if (!(await stream.writable(Channel.output))) break;
    if (stream.ended) return;
    report(stream, execution, existing);
    if (follow && !aside) execution.wasTold = true;
  } finally {
    reader.close();
  }
}

/** Passes on the part that the command has not received yet. */
async function take(stream: Stream, execution: Execution, offset: number | null, eof: boolean): Promise<void> {
  await execution.started;
  const { input } = execution;
  await input.inTurn(async () => {
    if (stream.ended) return;
    let known = offset === null ? 0 : input.received - offset;
    if (known < 0) throw new StartError(StreamErrorCode.stdin_gap, `standard input is at offset ${input.received}`);
    for await (const bytes of stream.read(Channel.stdin)) {
      const fresh = bytes.subarray(Math.min(known, bytes.byteLength));
      known -= bytes.byteLength - fresh.byteLength;
      if (fresh.byteLength === 0) continue;
      if (!input.isOpen) throw hasEnded(execution);
      await input.write(fresh);
    }
    if (stream.ended) return;
    if (eof) input.end();
    report(stream, execution);
  });
}

/** `existing` answers a request that starts an execution. */
function report(stream: Stream, execution: Execution, existing?: boolean): void {
  const message: ExecReport = { execution: execution.state, ...(existing !== undefined && { existing }) };
  stream.finish(message);
}

function hasEnded({ exec_id, isRunning }: Execution): StartError {
  const reason = isRunning ? "takes no standard input" : "has ended";
  return new StartError(StreamErrorCode.not_running, `${exec_id} ${reason}`);
}
