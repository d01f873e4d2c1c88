/** Owns the interface of commands run in a sandbox. */
import { Type } from "@sinclair/typebox";
import { fields, NONE, nullable, oneOf, operation, timestamp } from "./contract.ts";
import { environment, environmentJson, sandboxPath } from "./sandboxes.ts";

export const MAX_STDIN_BYTES = 8 * 1024 * 1024;
export const MAX_OUTPUT_BYTES = 8 * 1024 * 1024;
export const DEFAULT_OUTPUT_BYTES = 1024 * 1024;
export const DEFAULT_TIMEOUT_MS = 30_000;
export const MAX_TIMEOUT_MS = 3_600_000;
export const MAX_LIVE_EXECUTIONS = 64;

const command = {
  argv: Type.Optional(
    Type.Array(Type.String(), {
      minItems: 1,
      maxItems: 1024,
      code: "invalid_command",
      description: "The command and its arguments, run without a shell.",
    }),
  ),
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
      minimum: 1,
      maximum: MAX_TIMEOUT_MS,
      code: "timeout_out_of_range",
      description: "After this time the command's process group is ended; 30 000 if absent.",
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
      description: "Drive directory where the full streams are saved as stdout and stderr.",
    }),
  ),
  exec_id: Type.Optional(
    Type.String({
      pattern: "^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$",
      description: "The caller's own name for this run; the same one never runs twice.",
    }),
  ),
};

export const sandboxExec = operation({
  name: "sandbox_exec",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/exec",
  summary: "Run a command and wait for it",
  description: "Answers 200 whatever the command's outcome. A client that disconnects does not end the command.",
  access: "exec",
  params: sandboxPath,
  query: NONE,
  body: fields(command),
  output: fields({
    exec_id: Type.String(),
    state: oneOf(["exited"]),
    exit_code: nullable(Type.Integer()),
    signal: nullable(Type.String()),
    timed_out: Type.Boolean(),
    stdout: nullable(Type.String()),
    stderr: nullable(Type.String()),
    stdout_b64: Type.String(),
    stderr_b64: Type.String(),
    stdout_bytes: Type.Integer(),
    stderr_bytes: Type.Integer(),
    stdout_truncated: Type.Boolean(),
    stderr_truncated: Type.Boolean(),
    started_at: timestamp,
    finished_at: timestamp,
    duration_ms: Type.Integer(),
  }),
  outcomes: { exited: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "invalid_state",
    "room_destroying",
    "exec_id_in_use",
    "invalid_command",
    "cwd_not_found",
    "timeout_out_of_range",
    "invalid_env_json",
    "reserved_env_key",
    "conflicting_fields",
    "invalid_path",
    "path_escapes_drive",
    "too_many_executions",
    "guest_unreachable",
    "drive_full",
    "disk_full",
  ],
  onFullDisk: true,
  audit: "exec.finished",
  maxBodyBytes: 14 * 1024 * 1024,
  example: { body: { argv: ["uname", "-a"] } },
});
