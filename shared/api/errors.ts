/** The closed table of error codes: status, text, and whether a retry can help. */

interface ErrorKind {
  status: number;
  /** Status if the path names the resource, not a field of the request. */
  statusInPath?: number;
  title: string;
  retryable?: true;
  /** Delay before a retry, if the refusing code gives no better one: the header Retry-After. */
  retryAfterSeconds?: number;
  /** The next step, if it is the same for every occurrence. */
  hint?: string;
}

export const ERRORS = {
  invalid_json: { status: 400, title: "The body is not valid JSON" },
  invalid_body: { status: 400, title: "The body cannot be read" },
  invalid_query: { status: 400, title: "The query cannot be read" },
  invalid_cursor: {
    status: 400,
    title: "The cursor is not valid",
    hint: "Start again without a cursor, and pass each next_cursor on unchanged.",
  },
  missing_credentials: {
    status: 401,
    title: "No API key was sent",
    hint: "Send the header Authorization: Bearer <API_KEY>.",
  },
  invalid_api_key: {
    status: 401,
    title: "The API key is not valid",
    hint: "Check the key. `roomd key create` on the host makes a new one.",
  },
  api_key_expired: { status: 401, title: "The API key has expired", hint: "Request a new key." },
  session_ended: { status: 401, title: "The session has ended", hint: "Sign in again." },
  sign_in_failed: { status: 401, title: "The e-mail address or the password is not right" },
  insufficient_scope: { status: 403, title: "The API key lacks the scope for this" },
  scope_escalation: { status: 403, title: "A key cannot grant more than it has" },
  hub_is_read_only: {
    status: 403,
    title: "A web session is read-only",
    hint: "Use the API or the command line with an API key, or have an agent do it.",
  },
  sign_up_closed: {
    status: 403,
    title: "Sign-up is closed",
    hint: "The operator of this service, or a member of an organization, can invite you.",
  },
  proof_required: {
    status: 403,
    title: "Recent authentication is required",
    hint: "Enter your password again, or use a passkey; this is valid for 10 minutes.",
  },
  foreign_request: { status: 403, title: "The request comes from another site" },
  source_mismatch: { status: 403, title: "The source does not match the caller" },
  path_escapes_drive: {
    status: 403,
    title: "The path leads out of the room's drive",
    hint: "A link in the path points outside the drive. Use a path without that link.",
  },
  room_not_found: { status: 404, title: "No such room" },
  sandbox_not_found: { status: 404, title: "No such sandbox" },
  execution_not_found: { status: 404, title: "No such execution" },
  path_not_found: { status: 404, title: "No such path on the drive" },
  port_not_exposed: { status: 404, title: "The port is not exposed" },
  agent_not_found: { status: 404, title: "No such agent" },
  message_not_found: { status: 404, title: "No such message" },
  barrier_not_found: { status: 404, title: "No such barrier" },
  snapshot_not_found: { status: 404, title: "No such snapshot" },
  checkpoint_not_found: { status: 404, title: "No such checkpoint" },
  recording_not_found: { status: 404, title: "No such recording" },
  template_build_not_found: { status: 404, title: "No such build of a template" },
  org_not_found: { status: 404, title: "No such organization" },
  key_not_found: { status: 404, title: "No such key" },
  webhook_not_found: { status: 404, title: "No such webhook" },
  delivery_not_found: { status: 404, title: "No such event to deliver" },
  member_not_found: { status: 404, title: "No such member" },
  invitation_not_found: { status: 404, title: "No such invitation" },
  session_not_found: { status: 404, title: "No such session" },
  grant_not_found: { status: 404, title: "No such application" },
  device_not_found: {
    status: 404,
    title: "No pending application has this code",
    hint: "Check the code. It is valid for 10 minutes, and once.",
  },
  passkey_not_found: { status: 404, title: "No such passkey" },
  identity_not_found: { status: 404, title: "No such account" },
  checkout_not_found: { status: 404, title: "No such checkout" },
  link_not_found: {
    status: 404,
    title: "The link is not valid",
    hint: "It was used or has expired. Request a new one from its creator.",
  },
  id_not_found: {
    status: 404,
    title: "No resource has this id",
    hint: "It may be deleted, or not readable with your access. `roomd room list` and the page /rooms list the rooms.",
  },
  route_not_found: { status: 404, title: "No such route", hint: "GET /v1/openapi.json lists every route." },
  method_not_allowed: { status: 405, title: "The method is not allowed here" },
  body_too_large: { status: 413, title: "The body is too large" },
  payload_too_large: {
    status: 413,
    title: "The payload is too large",
    hint: "Write it to the drive and send the path.",
  },
  file_too_large: {
    status: 413,
    title: "The file is too large for this call",
    hint: "Use PUT or GET …/drive/files/{path}, which stream.",
  },
  unsupported_media_type: {
    status: 415,
    title: "The media type is not supported",
    hint: "Send Content-Type: application/json.",
  },
  room_id_in_use: { status: 409, title: "The room_id is in use" },
  agent_id_in_use: { status: 409, title: "The agent_id is in use in this room" },
  guest_cid_in_use: { status: 409, title: "The guest_cid is in use on this host" },
  last_owner: { status: 409, title: "An organization needs an owner" },
  last_way_in: {
    status: 409,
    title: "The last way to sign in cannot be removed",
    hint: "Set a password or add another passkey first.",
  },
  invalid_state: { status: 409, title: "Not possible in this state" },
  room_destroying: { status: 409, title: "The room is being destroyed" },
  snapshot_incompatible: {
    status: 409,
    title: "The saved state is incompatible with this host",
    hint: "details.differs lists the differences. Sandboxes of a snapshot of mode disk boot on any host.",
  },
  snapshot_in_use: {
    status: 409,
    title: "The snapshot is in use",
    hint: "First delete its users, listed in details.used_by.",
  },
  exec_id_in_use: { status: 409, title: "The exec_id is already used by a different command" },
  billing_off: {
    status: 409,
    title: "Billing is disabled",
    hint: "Plans and credits come from the operator of this service.",
  },
  mail_off: {
    status: 409,
    title: "This service sends no mail",
    hint: "The operator can make a link on the host: `roomd user link EMAIL`.",
  },
  already_exists: { status: 409, title: "It already exists" },
  is_directory: { status: 409, title: "The path is a directory" },
  not_empty: { status: 409, title: "The directory is not empty", hint: "Pass recursive=true to delete its contents." },
  agent_unavailable: { status: 409, title: "The agent is gone" },
  deadlock_detected: { status: 409, title: "The wait would never end" },
  barrier_timeout: { status: 409, title: "The barrier was not complete in time", retryable: true },
  barrier_broken: { status: 409, title: "A participant of the barrier is gone" },
  barrier_cancelled: { status: 409, title: "The barrier was cancelled" },
  barrier_parties_mismatch: { status: 409, title: "The barrier has a different number of parties" },
  idempotency_in_progress: {
    status: 409,
    title: "The first call with this Idempotency-Key is still running",
    retryable: true,
    retryAfterSeconds: 1,
  },
  history_gone: { status: 410, title: "That part of the history is no longer kept" },
  precondition_failed: { status: 412, title: "The precondition failed" },
  validation_failed: { status: 422, title: "The request is not valid" },
  unknown_field: { status: 422, title: "The request has a field that does not exist" },
  conflicting_fields: { status: 422, title: "The request has fields that exclude each other" },
  guest_cid_out_of_range: { status: 422, title: "guest_cid is out of range" },
  memory_mib_out_of_range: { status: 422, title: "memory_mib is out of range" },
  memory_below_template_minimum: { status: 422, title: "memory_mib is below the template's minimum" },
  template_not_found: {
    status: 422,
    statusInPath: 404,
    title: "No such template",
    hint: "{{template_list}} lists the templates.",
  },
  invalid_env_json: { status: 422, title: "The environment is not valid" },
  reserved_env_key: { status: 422, title: "The environment uses a reserved name" },
  invalid_egress_entry: { status: 422, title: "The egress allowlist has an entry that is not valid" },
  invalid_command: { status: 422, title: "The command is not valid", hint: "Send exactly one of argv and command." },
  cwd_not_found: { status: 422, title: "The working directory does not exist in the sandbox" },
  timeout_out_of_range: { status: 422, title: "timeout_ms is out of range" },
  port_out_of_range: { status: 422, title: "port is out of range" },
  invalid_path: { status: 422, title: "The path is not valid" },
  build_failed: { status: 422, title: "The template could not be built" },
  misdirected: { status: 421, title: "Another host owns the room", retryable: true },
  image_not_found: { status: 422, title: "No such image" },
  image_unauthorized: { status: 422, title: "The registry denies this host the image" },
  image_too_large: { status: 422, title: "The image is too large" },
  image_invalid: { status: 422, title: "The image is not valid" },
  idempotency_key_reused: {
    status: 422,
    title: "The Idempotency-Key was used with a different body",
    hint: "Use a new key for a new request.",
  },
  rate_limited: { status: 429, title: "Too many requests", retryable: true, retryAfterSeconds: 1 },
  registry_rate_limited: {
    status: 429,
    title: "The registry has rate-limited this host",
    retryable: true,
    retryAfterSeconds: 60,
    hint: "Give credentials, name a mirror, or try later.",
  },
  quota_exceeded: { status: 429, title: "A quota of the organization is used up" },
  inbox_full: { status: 429, title: "The agent's inbox is full", retryable: true, retryAfterSeconds: 1 },
  too_many_executions: {
    status: 429,
    title: "Too many live executions in this sandbox",
    retryable: true,
    retryAfterSeconds: 1,
  },
  too_many_ports: { status: 429, title: "Too many exposed ports in this sandbox" },
  caller_left: { status: 499, title: "The client disconnected before the response" },
  range_not_satisfiable: { status: 416, title: "The range is outside the file" },
  internal: {
    status: 500,
    title: "A bug in roomd",
    hint: "Report it. The daemon's log has the request_id.",
  },
  billing_failed: {
    status: 502,
    title: "The call to the payment service failed",
    retryable: true,
    retryAfterSeconds: 5,
  },
  upstream_failed: { status: 502, title: "The call to the identity provider failed" },
  guest_unreachable: { status: 502, title: "The guest does not answer", retryable: true },
  port_not_listening: { status: 502, title: "Nothing listens on the port", retryable: true },
  not_ready: { status: 503, title: "The service is not ready", retryable: true, retryAfterSeconds: 1 },
  insufficient_capacity: {
    status: 503,
    title: "The host has no capacity left for this",
    retryable: true,
    retryAfterSeconds: 1,
  },
  cluster_unavailable: {
    status: 503,
    title: "The cluster's shared data cannot be changed at the moment",
    retryable: true,
    retryAfterSeconds: 1,
  },
  not_a_member: {
    status: 503,
    title: "This host is no longer a member of the cluster",
    retryable: true,
    retryAfterSeconds: 5,
    hint: "Call another host of the cluster. Its operator lists the hosts with `roomd cluster list` there.",
  },
  host_unreachable: { status: 503, title: "The room's host does not answer", retryable: true, retryAfterSeconds: 1 },
  room_moving: { status: 503, title: "The room is moving to another host", retryable: true, retryAfterSeconds: 1 },
  shutting_down: { status: 503, title: "The service is shutting down", retryable: true, retryAfterSeconds: 1 },
  reply_timeout: { status: 504, title: "No reply in time", retryable: true },
  drive_full: { status: 507, title: "The drive's quota is used up" },
  disk_full: { status: 507, title: "The host's disk is full" },
} as const satisfies Record<string, ErrorKind>;

export type ErrorCode = keyof typeof ERRORS;

export function errorKind(code: ErrorCode): ErrorKind {
  return ERRORS[code];
}

/** One invalid field of a request. `code` is an ErrorCode if the field has its own, otherwise the violated rule. */
export interface FieldError {
  field: string;
  code: string;
  message: string;
  min?: number;
  max?: number;
}

/** RFC 9457 problem, as every transport sends it. */
export interface Problem {
  type: string;
  title: string;
  status: number;
  detail: string;
  code: ErrorCode;
  retryable: boolean;
  request_id: string;
  details: Record<string, unknown>;
  errors: FieldError[];
  hint: string | null;
}
