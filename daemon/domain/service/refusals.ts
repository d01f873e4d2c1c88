/** Examples of problems beyond the generic text of their code, in the room of example-values.ts: detail, fields, details. */
import type { ErrorCode, Problem } from "../../../shared/api/errors.ts";

type Said = Partial<Pick<Problem, "detail" | "details" | "errors">>;

/** A problem with one field of the request. */
function field(name: string, code: string, message: string, bounds: { min?: number; max?: number } = {}): Said {
  return { detail: message, errors: [{ field: name, code, message, ...bounds }] };
}

export const REFUSALS: Partial<Record<ErrorCode, Said>> = {
  invalid_query: { detail: "The query has an encoding that is not UTF-8." },
  invalid_cursor: { detail: "The cursor is not valid: it was changed, or belongs to another list." },
  insufficient_scope: {
    detail: "The API key lacks the scope sandboxes:write.",
    details: { required: "sandboxes:write" },
  },
  source_mismatch: { detail: "This key acts as worker-1, and not as planner." },
  path_escapes_drive: { detail: "/link leads out of the drive." },
  room_not_found: { detail: "There is no room build-42." },
  sandbox_not_found: { detail: "Room build-42 has no sandbox worker-1." },
  execution_not_found: { detail: "Sandbox worker-1 has no execution build-1." },
  path_not_found: { detail: "There is nothing at /notes.txt." },
  port_not_exposed: { detail: "Port 8000 is not exposed." },
  agent_not_found: { detail: "Room build-42 has no agent worker-2." },
  barrier_not_found: { detail: "Room build-42 has no barrier merged." },
  body_too_large: { detail: "The body is over 1048576 bytes.", details: { max_bytes: 1_048_576 } },
  payload_too_large: { detail: "The payload has 70000 bytes; the limit is 65536." },
  room_id_in_use: { detail: "There is an active room build-42." },
  agent_id_in_use: { detail: "Agent worker-1 has a live sandbox in room build-42." },
  guest_cid_in_use: {
    detail: "guest_cid 9100 is in use on this host.",
    details: { suggested_guest_cid: 9101 },
  },
  invalid_state: {
    detail: "Sandbox worker-1 is paused; this needs it to be running.",
    details: { state: "paused", allowed_states: ["running"] },
  },
  room_destroying: { detail: "Room build-42 is being destroyed." },
  exec_id_in_use: { detail: "exec_id build-1 is already used by a different command." },
  already_exists: { detail: "/notes.txt exists already." },
  is_directory: { detail: "/results is a directory." },
  not_empty: { detail: "/results is not empty." },
  agent_unavailable: { detail: "Agent worker-1 is gone: its sandbox was destroyed." },
  deadlock_detected: {
    detail: "This wait would never end: planner waits for worker-1 waits for planner.",
    details: { cycle: ["planner", "worker-1", "planner"] },
  },
  barrier_timeout: {
    detail: "1 of 2 arrived at barrier merged within 30000 ms. This arrival stays recorded.",
    details: { generation: 1, arrived: ["planner"], missing: ["worker-1"] },
  },
  barrier_broken: {
    detail: "Barrier merged is broken, since these participants are gone: worker-1.",
    details: { generation: 1, arrived: ["planner"], missing: ["worker-1"], dead: ["worker-1"] },
  },
  barrier_cancelled: {
    detail: "Barrier merged was cancelled.",
    details: { generation: 1, arrived: ["planner"], missing: ["worker-1"] },
  },
  barrier_parties_mismatch: { detail: "Barrier merged has 2 parties, not 3." },
  validation_failed: field("ttl_seconds", "out_of_range", "ttl_seconds must be at least 1 and at most 31536000.", {
    min: 1,
    max: 31_536_000,
  }),
  unknown_field: field("memory_mb", "unknown_field", "There is no field memory_mb. Did you mean memory_mib?"),
  conflicting_fields: field("env_json", "conflicting_fields", "Send either env or env_json, not both."),
  guest_cid_out_of_range: field(
    "guest_cid",
    "guest_cid_out_of_range",
    "guest_cid must be at least 9100 and at most 9999.",
    { min: 9100, max: 9999 },
  ),
  memory_mib_out_of_range: field("memory_mib", "memory_mib_out_of_range", "memory_mib must be at least 128.", {
    min: 128,
  }),
  template_not_found: { detail: "There is no template nightly.", details: { available: ["default"] } },
  reserved_env_key: field("env", "reserved_env_key", "ROOMD_URL begins with ROOMD_, which is reserved."),
  cwd_not_found: field("cwd", "cwd_not_found", "/srv/app does not exist in the sandbox."),
  port_out_of_range: field("port", "port_out_of_range", "port must be at least 1 and at most 65535.", {
    min: 1,
    max: 65_535,
  }),
  quota_exceeded: { detail: "The organization has 200 sandboxes; its plan allows 200." },
  inbox_full: {
    detail: "The inbox of worker-1 is full (1000 messages). The message was not sent to any recipient.",
    details: { agents: ["worker-1"], limit: 1000 },
  },
  range_not_satisfiable: { detail: "The file has 6 bytes.", details: { size_bytes: 6 } },
  insufficient_capacity: {
    detail: "The host has 300 MiB free for guests; this sandbox needs 576 MiB.",
    details: { memory_mib_free: 300 },
  },
};
