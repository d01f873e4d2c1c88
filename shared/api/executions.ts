/** Interface of commands run in a sandbox. */
import { type Static, Type } from "@sinclair/typebox";
import {
  errorEvent,
  fields,
  NONE,
  named,
  nullable,
  oneOf,
  operation,
  page,
  pageQuery,
  record,
  timestamp,
} from "./contract.ts";
import { environment, environmentJson, REACH_ERRORS, sandboxPath } from "./sandboxes.ts";

export const MAX_STDIN_BYTES = 8 * 1024 * 1024;
export const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;
export const DEFAULT_OUTPUT_BYTES = 1024 * 1024;
/** Default for a command with a waiting caller; a started command has no time limit by default. */
export const DEFAULT_TIMEOUT_MS = 600_000;
export const MAX_TIMEOUT_MS = 604_800_000;
export const MAX_LIVE_EXECUTIONS = 64;
/** Maximum of standard input that waits to be read by one sandbox's commands. */
export const MAX_WAITING_STDIN_BYTES = 64 * 1024 * 1024;
/** Maximum of concurrent output streams from one sandbox. */
export const MAX_READERS = 128;
const SIGNAL_NAMES = [
  ...[
    "HUP",
    "INT",
    "QUIT",
    "ILL",
    "TRAP",
    "ABRT",
    "BUS",
    "FPE",
    "KILL",
    "USR1",
    "SEGV",
    "USR2",
    "PIPE",
    "ALRM",
    "TERM",
  ],
  ...[
    "CHLD",
    "CONT",
    "STOP",
    "TSTP",
    "TTIN",
    "TTOU",
    "URG",
    "XCPU",
    "XFSZ",
    "VTALRM",
    "PROF",
    "WINCH",
    "IO",
    "PWR",
    "SYS",
  ],
] as const;
export const SIGNALS: readonly string[] = SIGNAL_NAMES.flatMap((name) => [`SIG${name}`, name]);
export const EXEC_ID_PATTERN = "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$";

const command = {
  argv: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: 1024,
      code: "invalid_command",
      description: "The command and its arguments, run without a shell.",
    }),
  ),
  argv_json: Type.Optional(Type.String({ code: "invalid_command", description: "The same as a JSON string." })),
  command: Type.Optional(
    Type.String({ minLength: 1, code: "invalid_command", description: "A line that /bin/sh -c runs." }),
  ),
  cwd: Type.Optional(Type.String({ minLength: 1, maxLength: 4096, description: "Working directory in the guest." })),
  env: environment,
  env_json: environmentJson,
  user: Type.Optional(
    Type.String({ pattern: "^[A-Za-z0-9_][A-Za-z0-9_.-]{0,31}$", description: "User name or id; root if absent." }),
  ),
  stdin: Type.Optional(Type.String({ description: "Text for standard input." })),
  stdin_b64: Type.Optional(Type.String({ contentEncoding: "base64", description: "Bytes for standard input." })),
  timeout_ms: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_TIMEOUT_MS,
      code: "timeout_out_of_range",
      description:
        "Ends the command after this time: SIGTERM to its process group, SIGKILL 5 s later. 0: no limit. At most 7 days. Default: 600 000 for a command that the call waits for, no limit for a command that it starts.",
    }),
  ),
  max_output_bytes: Type.Optional(
    Type.Integer({
      minimum: 0,
      maximum: MAX_OUTPUT_BYTES,
      description: "Most bytes of each stream in the answer; 1 MiB if absent.",
    }),
  ),
  output_to: Type.Optional(
    Type.String({
      minLength: 1,
      description: "Drive directory for the full streams, in the files stdout and stderr.",
    }),
  ),
  exec_id: Type.Optional(
    Type.String({
      pattern: EXEC_ID_PATTERN,
      description: "The caller's own name for this run. The same name never runs twice.",
    }),
  ),
};

/** Position and end of a stream of events. */
export const streamQuery = (further: string) =>
  fields({
    after: Type.Optional(
      Type.Integer({
        minimum: -1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: "seq of the last event you have; from the beginning if absent.",
      }),
    ),
    follow: Type.Optional(Type.Boolean({ description: `Whether to wait for further ${further}; true if absent.` })),
  });

const ofExecution = [...REACH_ERRORS, "execution_not_found", "history_gone"] as const;

const commandErrors = [
  ...REACH_ERRORS,
  "exec_id_in_use",
  "invalid_command",
  "cwd_not_found",
  "timeout_out_of_range",
  "invalid_env_json",
  "reserved_env_key",
  "conflicting_fields",
  "invalid_path",
  "too_many_executions",
] as const;

const savedFile = fields({ path: Type.String(), size_bytes: Type.Integer(), sha256: Type.String() });

const oom = Type.Optional(
  Type.Boolean({
    description: "Present and true if the kernel ended a process of the command because the sandbox ran out of memory.",
  }),
);

/** The result of saving the streams as requested in `output_to`. */
const output = nullable(
  record("SavedOutput", {
    path: Type.String({ description: "The drive directory." }),
    state: oneOf(["saving", "saved", "failed"]),
    stdout: nullable(savedFile),
    stderr: nullable(savedFile),
    error_code: nullable(Type.String({ description: "Why the output could not be saved." })),
  }),
);

export const sandboxExec = operation({
  name: "sandbox_exec",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/exec",
  summary: "Run a command and wait for it",
  description:
    "Answers 200 regardless of the command's outcome, or 202 if the command still runs after wait_ms. If its output could not be saved, `output` has the reason. A client that disconnects does not end the command. A second call with the same exec_id and body, or the same Idempotency-Key, gets the first run's outcome and never starts a second run; if that outcome is no longer kept, it is 410. A sandbox stores the newest 65,536 such names.",
  access: "exec",
  params: sandboxPath,
  query: NONE,
  body: fields({
    ...command,
    wait_ms: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: MAX_TIMEOUT_MS,
        description:
          "Longest wait for the command's end. After it the answer is 202 with state running and the output so far; the command continues under its exec_id. By default the call waits until the end.",
      }),
    ),
  }),
  output: record("ExecResult", {
    exec_id: Type.String(),
    state: oneOf(["exited", "running"], { description: "running only in a 202, after wait_ms." }),
    exit_code: nullable(Type.Integer()),
    signal: nullable(Type.String()),
    timed_out: Type.Boolean(),
    oom,
    stdout: nullable(Type.String()),
    stderr: nullable(Type.String()),
    stdout_b64: Type.String(),
    stderr_b64: Type.String(),
    stdout_bytes: Type.Integer(),
    stderr_bytes: Type.Integer(),
    stdout_truncated: Type.Boolean(),
    stderr_truncated: Type.Boolean(),
    started_at: timestamp,
    finished_at: nullable(timestamp),
    duration_ms: Type.Integer({ description: "While it runs: so far." }),
    last_seq: Type.Optional(
      Type.Integer({
        description: "Only while it runs: the last piece of output in this answer, for after of its stream.",
      }),
    ),
    output,
  }),
  outcomes: { exited: 200, running: 202 },
  errors: [...commandErrors, "history_gone"],
  onFullDisk: true,
  audit: "exec.finished",
  maxBodyBytes: 14 * 1024 * 1024,
  example: { body: { argv: ["cat", "/mnt/drive/notes.txt"] } },
});

const execId = Type.String({ pattern: EXEC_ID_PATTERN, description: "The execution, by its exec_id." });

const executionPath = fields({ ...sandboxPath.properties, exec_id: execId });

const execution = record("Execution", {
  exec_id: Type.String(),
  state: oneOf(["running", "exited"]),
  argv: Type.Array(Type.String(), { description: "The command, truncated to 1024 characters." }),
  cwd: Type.String(),
  user: Type.String(),
  pid: nullable(Type.Integer({ description: "In the guest." })),
  timeout_ms: nullable(Type.Integer({ description: "null: no limit." })),
  exit_code: nullable(Type.Integer()),
  signal: nullable(Type.String()),
  timed_out: Type.Boolean(),
  oom,
  stdout_bytes: Type.Integer(),
  stderr_bytes: Type.Integer(),
  oldest_seq: Type.Integer({
    description: "The oldest piece of output that is still kept; the very first one is 1.",
  }),
  last_seq: Type.Integer({ description: "The last piece of output." }),
  stdin_bytes: Type.Integer({ description: "Bytes of standard input that the command has received." }),
  stdin_open: Type.Boolean(),
  started_at: timestamp,
  finished_at: nullable(timestamp),
  duration_ms: nullable(Type.Integer()),
  output,
});

export type ExecutionRecord = Static<typeof execution>;

export const executionStart = operation({
  name: "execution_start",
  extension: "executions",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions",
  summary: "Start a command and leave it running",
  description:
    "A second call with the same exec_id and body, or the same Idempotency-Key, returns the same execution and never starts a second run. The sandbox keeps the last 16 MiB of its output for 10 minutes after its end, independently of clients and the daemon. All ended executions together take at most 1 GiB of the sandbox's disk and 16 MiB of its memory; above that, executions that a caller waited for without an exec_id are removed first, then the oldest.",
  access: "exec",
  params: sandboxPath,
  query: NONE,
  body: fields({
    ...command,
    stdin_open: Type.Optional(
      Type.Boolean({
        description:
          "Whether standard input takes more later; true if absent, unless stdin or stdin_b64 is all there is.",
      }),
    ),
  }),
  output: execution,
  outcomes: { started: 201, existing: 200 },
  location: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}",
  errors: [...commandErrors, "history_gone"],
  onFullDisk: true,
  audit: "exec.started",
  maxBodyBytes: 14 * 1024 * 1024,
  example: { body: { command: "make -j2", exec_id: "build-1", timeout_ms: 600_000 } },
});

export const executionList = operation({
  name: "execution_list",
  extension: "executions",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions",
  summary: "List a sandbox's executions",
  description: "Running executions, and executions ended in the last 10 minutes, in the order of their start.",
  access: "exec",
  watched: true,
  params: sandboxPath,
  query: fields(pageQuery),
  body: null,
  output: page(execution),
  outcomes: { ok: 200 },
  errors: [...REACH_ERRORS, "invalid_cursor"],
  audit: "exec.read",
});

export const executionGet = operation({
  name: "execution_get",
  extension: "executions",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}",
  summary: "Get an execution",
  access: "exec",
  watched: true,
  params: executionPath,
  query: NONE,
  body: null,
  output: execution,
  outcomes: { ok: 200 },
  errors: [...ofExecution],
  audit: "exec.read",
});

const seq = Type.Integer({ description: "The event's position in the stream: the value for `after`." });

/** Events of an output stream, besides pings. */
export const executionEvent = named(
  "ExecutionEvent",
  Type.Union([
    record("OutputEvent", {
      seq,
      type: oneOf(["stdout", "stderr"]),
      data_b64: Type.String({ contentEncoding: "base64" }),
    }),
    record("StartedEvent", { seq, type: oneOf(["started"]), exec_id: Type.String(), started_at: timestamp }),
    record("ExitEvent", {
      seq,
      type: oneOf(["exit"]),
      exit_code: nullable(Type.Integer()),
      signal: nullable(Type.String()),
      timed_out: Type.Boolean(),
      oom,
      stdout_bytes: Type.Integer(),
      stderr_bytes: Type.Integer(),
      finished_at: timestamp,
      duration_ms: Type.Integer(),
    }),
    errorEvent,
  ]),
);

export const executionStream = operation({
  name: "execution_stream",
  extension: "executions",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}/stream",
  summary: "Stream an execution's output",
  description:
    "Lines of JSON, or server-sent events if Accept requests them: started (seq 0), stdout and stderr with their bytes in data_b64, ping every 15 s, and last exit or error. A stream without one of these two is incomplete: call again with after. Only with follow=false may it end without. A slow reader makes the command wait, unless another reader is faster or the slow one is a web session, which gets history_gone if its next output is no longer kept.",
  access: "exec",
  watched: true,
  params: executionPath,
  query: streamQuery("output"),
  body: null,
  headers: ["last_event_id"],
  output: executionEvent,
  outcomes: { ok: 200 },
  bytesOutput: ["application/x-ndjson", "text/event-stream"],
  errors: [...ofExecution, "too_many_executions"],
  audit: "exec.read",
});

export const executionStdin = operation({
  name: "execution_stdin",
  extension: "executions",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}/stdin",
  summary: "Write to an execution's standard input",
  description:
    "Answers once the command's pipe has accepted the bytes. With offset, sending the same bytes again adds nothing.",
  access: "exec",
  params: executionPath,
  query: NONE,
  body: fields({
    data_b64: Type.Optional(Type.String({ contentEncoding: "base64" })),
    eof: Type.Optional(Type.Boolean({ description: "Whether standard input ends after these bytes." })),
    offset: Type.Optional(
      Type.Integer({
        minimum: 0,
        maximum: Number.MAX_SAFE_INTEGER,
        description:
          "Position of the first of these bytes in the standard input; stdin_bytes is the number that has arrived.",
      }),
    ),
  }),
  output: execution,
  outcomes: { ok: 200 },
  errors: [...ofExecution, "too_many_executions"],
  onFullDisk: true,
  audit: "exec.stdin",
  maxBodyBytes: 14 * 1024 * 1024,
  example: { body: { data_b64: "aGVsbG8K", eof: true } },
});

export const executionSignal = operation({
  name: "execution_signal",
  extension: "executions",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}/signal",
  summary: "Send an execution a signal",
  description: "To its process group, as ctrl-c on a terminal would.",
  access: "exec",
  params: executionPath,
  query: NONE,
  body: fields({
    signal: oneOf(SIGNALS, { description: "SIGINT or INT, and so on." }),
  }),
  output: execution,
  outcomes: { ok: 200 },
  errors: [...ofExecution],
  onFullDisk: true,
  audit: "exec.signal",
  example: { body: { signal: "SIGINT" } },
});

export const executionEnd = operation({
  name: "execution_end",
  extension: "executions",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/executions/{exec_id}",
  summary: "End an execution",
  description:
    "Sends SIGTERM, and after 5 s SIGKILL, to everything it started, background processes too. Answers when nothing is left. A second call gets the same answer.",
  access: "exec",
  params: executionPath,
  query: NONE,
  body: null,
  output: execution,
  outcomes: { ended: 200 },
  errors: [...ofExecution],
  audit: "exec.killed",
});
