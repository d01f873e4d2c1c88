/**
 * One call of every MCP tool that works in an empty room without guests, or is refused there because there is no guest, and one invalid
 * call.
 */
import type { Tool } from "../../../shared/api/mcp/tool.ts";
import { TOOLS } from "../../../shared/api/mcp/tools.ts";

interface Row {
  /** Arguments in a room of this name. */
  args(room_id: string): Record<string, unknown>;
  /** Error code of the call without guests; absent: it succeeds. */
  without_guests?: string;
  /** Arguments that make it invalid, and the error code. */
  wrong: Record<string, unknown>;
  code: string;
  /** Other arguments, in the room r, with which it waits in another way. */
  also_waits?: readonly Record<string, unknown>[];
}

const inRoom =
  (more: Record<string, unknown> = {}) =>
  (room_id: string) => ({ room_id, ...more });
const missingRoom = { wrong: { room_id: "no-such-room" }, code: "room_not_found" };
const unknown = { wrong: { colour: "red" }, code: "unknown_field" };
const ofSandbox = (more: Record<string, unknown> = {}) => ({
  args: inRoom({ sandbox: "worker-1", ...more }),
  without_guests: "sandbox_not_found",
  ...missingRoom,
});

export const ROWS: Record<string, Row> = {
  health: { args: () => ({}), ...unknown },
  usage: { args: () => ({}), wrong: { org_id: "org_none" }, code: "org_not_found" },
  room_list: { args: () => ({ limit: 5 }), wrong: { limit: 0 }, code: "validation_failed" },
  room_create: {
    args: (room_id) => ({ room_id: `${room_id}.new` }),
    wrong: { room_id: "/" },
    code: "validation_failed",
  },
  room_get: { args: inRoom(), ...missingRoom },
  room_destroy: { args: inRoom({ drive: "delete" }), ...missingRoom },
  sandbox_create: {
    args: inRoom({ agent_id: "worker-1", guest_cid: 9100 }),
    without_guests: "template_not_found",
    wrong: { guest_cid: 12 },
    code: "guest_cid_out_of_range",
  },
  sandbox_exec: {
    ...ofSandbox({ argv_json: '["true"]' }),
    wrong: { argv_json: "[" },
    code: "invalid_command",
    also_waits: [
      { room_id: "r", sandbox: "worker-1", command: "true", background: true },
      { room_id: "r", sandbox: "worker-1", exec_id: "build-1", after: 1 },
      { room_id: "r", sandbox: "worker-1", exec_id: "build-1", signal: "SIGTERM", stdin_b64: "", eof: true },
    ],
  },
  sandbox_destroy: ofSandbox(),
  sandbox_expose_port: { ...ofSandbox({ port: 8000 }) },
  sandbox_unexpose_port: { ...ofSandbox({ port: 8000 }) },
  agent_send: {
    args: inRoom({ source: "planner", destination: "planner", payload: { n: 1 } }),
    wrong: { destination: "" },
    code: "validation_failed",
  },
  agent_request: {
    args: inRoom({ source: "planner", destination: "reviewer", payload: 1, timeout_ms: 1 }),
    without_guests: "agent_not_found",
    wrong: { kind: "event" },
    code: "unknown_field",
  },
  agent_fanout: {
    args: inRoom({ source: "planner", topic: "builds", payload_b64: "aGk=" }),
    wrong: { destination: "planner" },
    code: "conflicting_fields",
  },
  agent_wait: {
    args: inRoom({ agent_id: "planner", wait_ms: 0 }),
    wrong: { barrier_id: "none" },
    code: "barrier_not_found",
    also_waits: [{ room_id: "r", agent_id: "planner", barrier_id: "all" }],
  },
  barrier_arrive: {
    args: inRoom({ barrier_id: "all", arrivals_json: '["a","b"]' }),
    wrong: { agent_id: "c" },
    code: "conflicting_fields",
  },
  fs_write: {
    args: inRoom({ path: "/notes.txt", content_b64: "aGVsbG8K" }),
    wrong: { path: ".." },
    code: "invalid_path",
  },
  fs_list: { args: inRoom(), wrong: { path: "/none" }, code: "path_not_found" },
  fs_read: { args: inRoom({ path: "/notes.txt" }), wrong: { path: "/none" }, code: "path_not_found" },
  audit_list: { args: inRoom(), ...missingRoom },
  org_audit_list: { args: () => ({ raw: true, limit: 2 }), wrong: { cursor: "edited" }, code: "invalid_cursor" },
};

export const TOOL_LIST: readonly Tool[] = [...TOOLS.values()];

export function rowOf({ name }: Tool): Row {
  const row = ROWS[name];
  if (!row) throw new Error(`${name} has no row in tool-calls.ts`);
  return row;
}
