/**
 * Owns what the examples of the OpenAPI document tell: one room at work, for an hour. Of each field, by its name or by that and what
 * it is part of, the values that it has there: the first that fits its schema is the example.
 */
import { createHash } from "node:crypto";
import { API_EXTENSIONS, type operations } from "../../../shared/api/operations.ts";
import { GUARANTEES, NON_GUARANTEES } from "./guarantees.ts";

const hashOf = (text: string) => createHash("sha256").update(text).digest("hex");
const at = (time: string) => `2026-01-31T${time}Z`;

const ROOM_MADE = at("12:00:00.000");
const SANDBOX_MADE = at("12:00:05.000");
const RAN = at("12:01:00.000");
const SENT = at("12:05:00.000");
const LOOKED = at("12:30:00.000");
const EXPIRES = at("13:00:00.000");

const KEY_ID = "kid_01KDYYYSM0V7R3N8QX2T5W9ZBC";
const ROOM = "build-42";
const ROOM_UID = "rom_01KG9YS7G0B5H8K3M6P9R2T4WY";
const WORKER = "worker-1";
const LABEL = "web-k3vq7m2xdw5tzjh4rnplc6ayse";
const MESSAGE = "msg_01KG9Z2CF0W3Y6A9C4F7J2M5QT";
const TERMINAL = "ter_01KG9YV230Q8F4M6T1X9C5ZWJN";
const PUBLIC_URL = "https://rooms.example.org";
const TEXT = "hello\n";

const SUMMARY = `Room ${ROOM}: 48 records from 2026-01-31 12:00 to 2026-01-31 12:05 UTC; 47 succeeded, 0 were denied, 1 failed. Most often: message.sent (34). Agents: ${WORKER} (48). Reasons for refusals and failures: path_not_found (1).`;

export const REQUEST_ID = "req_01KGA0G5A0D4W7K9M2R5V8ZXQP";

/** The beginning of what /metrics answers. */
export const FIGURES = `# HELP roomd_rooms Rooms that are not destroyed.
# TYPE roomd_rooms gauge
roomd_rooms 1
# HELP roomd_requests_total Requests answered, by door, operation and class of status.
# TYPE roomd_requests_total counter
roomd_requests_total{door="rest",operation="room_create",status="2xx"} 1
`;

export const STORY: Record<string, readonly unknown[]> = {
  // Names and numbers of things.
  org_id: ["org_01KDYYYSM0F2J6N4Q8S3V7XZTR"],
  "org.name": ["Acme"],
  plan: ["starter"],
  key_id: [KEY_ID],
  key_prefix: ["key-Xb71Qm4t"],
  key: ["key-Xb71Qm4t…"],
  api_key: ["key-Xb71Qm4t…"],
  room_id: [ROOM],
  room_uid: [ROOM_UID],
  "room.host": ["host-k3vq7m2xdw5t"],
  sandbox_id: ["sbx_01KG9YSCC8J4D7F9H2M5Q8S3VX"],
  sandbox: [WORKER],
  agent_id: [WORKER],
  guest_cid: [9100],
  exec_id: ["build-1"],
  terminal_id: [TERMINAL],
  access_id: ["ssa_01KG9YV230N7C2F5J8M4R6T9WX"],
  ssh_key_id: ["ssk_01KDYYYSM0T4W8Z2B6D9G3K7NQ"],
  message_id: [MESSAGE],
  barrier_id: ["merged"],
  template_id: ["default"],
  audit_id: ["evt_01KG9Z2CF0H8K2N5R7T3W6Y9BD"],
  request_id: [REQUEST_ID],
  user_id: ["usr_01KDYYYSM0N3H6K9Q2S5V8X1ZB"],
  session_id: ["ses_01KG9YSCC8B4D7F0H3M6Q9S2VX"],
  invitation_id: ["lnk_01KG9YSCC8E5G8J1M4P7S0V3XZ"],
  email: ["ada@example.org"],
  role: ["owner", "member"],
  "organization.name": ["Acme"],
  has_password: [true],
  proved_until: [EXPIRES],
  seen_at: [LOOKED],
  user_agent: ["Mozilla/5.0 (X11; Linux x86_64) Chrome/142.0"],
  is_this: [true],
  disabled_at: [null],
  keys_revoked: [1],
  sessions_ended: [1],
  name: ["ci", "notes.txt"],
  "drive.name": ["notes.txt"],
  "actor.id": [KEY_ID],
  "actor.type": ["key"],
  "created_by.id": [KEY_ID],
  "created_by.type": ["key"],
  scopes: [["rooms:read", "rooms:write", "sandboxes:read", "sandboxes:write", "exec", "drive:read", "drive:write"]],
  room_ids: [null],
  "key.agent_id": [null],
  "replaces.agent_id": [null],
  replaced_by: [null],
  labels: [{ team: "search" }],

  // Times.
  time: [LOOKED],
  at: [SENT],
  as_of: [LOOKED],
  created_at: [ROOM_MADE],
  updated_at: [ROOM_MADE],
  modified_at: [RAN],
  last_transition_at: [ROOM_MADE],
  "sandbox.created_at": [SANDBOX_MADE],
  "sandbox.started_at": [at("12:00:05.031")],
  "sandbox.stopped_at": [null],
  "sandbox.exit": [null],
  "sandbox.at": [LOOKED],
  ready_at: [at("12:00:05.412")],
  "exec.created_at": [RAN],
  started_at: [RAN],
  finished_at: [null, at("12:01:01.250")],
  ended_at: [null, EXPIRES],
  "barrier.opened_at": [SENT],
  released_at: [at("12:05:02.180")],
  "port.created_at": [RAN],
  "message.created_at": [SENT],
  "reply.created_at": [at("12:05:02.180")],
  last_seen_at: [SENT],
  "key.created_at": ["2026-01-02T09:00:00.000Z"],
  "org.created_at": ["2026-01-02T09:00:00.000Z"],
  "replaces.created_at": ["2026-01-02T09:00:00.000Z"],
  "template.created_at": ["2026-01-02T09:00:00.000Z"],
  last_used_at: [LOOKED],
  revoked_at: [null],
  expires_at: [null, EXPIRES],
  from_at: [ROOM_MADE],
  to_at: [SENT],
  "period.start_at": ["2026-01-01T00:00:00.000Z"],
  "period.end_at": ["2026-02-01T00:00:00.000Z"],
  until_at: ["2026-02-01T12:30:00.000Z"],

  // The service.
  version: ["0.1.0"],
  commit: ["0a1b2c3"],
  api_versions: [["v1"]],
  topology: ["bare_metal"],
  ready: [true],
  uptime_seconds: [86_400],
  "check.id": ["acceleration"],
  "check.message": ["KVM is there, and opens."],
  "check.remedy": [null],
  "capacity.memory_mib_free": [48_128],
  "capacity.guest_cids_free": [899],
  digest: [`sha256:${hashOf("template")}`],
  template_digest: [`sha256:${hashOf("template")}`],
  description: ["Debian 13 with git, curl, Python 3 and Node.js"],
  tools: [["bash", "curl", "git", "node", "python3"]],
  min_memory_mib: [256],
  default_memory_mib: [512],

  // Rooms and sandboxes.
  state: ["running", "active", "waiting", "queued", "destroyed"],
  "status.reason": ["ready"],
  "status.message": ["The sandbox is running."],
  "room.status": [{ reason: "created", message: "The room is active.", last_transition_at: ROOM_MADE }],
  "status.last_transition_at": [at("12:00:05.412")],
  sandbox_count: [1],
  sandboxes_destroyed: [[WORKER]],
  warnings: [[]],
  memory_mib: [512],
  vcpu_count: [1],
  create_wall_ms: [412],
  boot: [{ machine_ms: 31, load_ms: 118, agent_ms: 243 }],
  env_keys: [["LANG"]],
  fabric_attached: [true],
  drive_mount: ["/mnt/drive"],
  "drive.message": [null],
  "drive.used_bytes": [5_242_880],
  "drive.limit_bytes": [10_737_418_240],
  "drive.file_count": [37],
  "cpu.used_seconds": [42.17],
  "memory.resident_bytes": [301_989_888],
  "disk.used_bytes": [73_400_320],
  "cpu.cores": [16],
  "cpu.busy_seconds": [184_220.31],
  "cpu.idle_seconds": [1_102_377.9],
  "memory.size_bytes": [67_108_864_000],
  "memory.available_bytes": [48_318_382_080],
  "memory.promised_bytes": [536_870_912],
  "disk.size_bytes": [536_870_912_000],
  "disk.free_bytes": [402_653_184_000],
  "host.rooms": [1],
  "host.sandboxes": [{ running: 1, paused: 0, failed: 0 }],
  "host.requests": [2184],
  not_shown: [0],
  clock_skew_ms: [0.4],
  line: ["[    0.000000] Linux version 6.12.57+deb13-amd64"],
  offset: [0],
  next_after: [49, 41],
  "message.next_after": [41],
  mode: ["0644", "allowlist"],
  allowlist: [["deb.debian.org:443", "*.example.org"]],
  revision: [2],
  guest_net: [true],
  open_connections: [1],
  connections: [23],
  sent_bytes: [48_210],
  received_bytes: [18_350_080],

  // Commands and terminals.
  argv: [["/bin/sh", "-c", "make -j2"]],
  "exec.command": ["/bin/bash"],
  cwd: ["/root"],
  user: ["root"],
  pid: [1287],
  timeout_ms: [600_000],
  exit_code: [null],
  signal: [null],
  timed_out: [false],
  stdout: [TEXT],
  stdout_b64: [Buffer.from(TEXT).toString("base64")],
  stdout_bytes: [4096],
  stderr: [""],
  stderr_b64: [""],
  stderr_bytes: [0],
  stdout_truncated: [false],
  stderr_truncated: [false],
  "exec.seq": [1],
  data_b64: [Buffer.from(TEXT).toString("base64")],
  oldest_seq: [1],
  last_seq: [1],
  stdin_bytes: [0],
  stdin_open: [true],
  duration_ms: [null, 1250],
  output: [null],
  attached: [true],
  rows: [24],
  cols: [80],
  end_reason: [null],
  ws_path: [`/v1/rooms/${ROOM}/sandboxes/${WORKER}/terminals/${TERMINAL}/ws`],
  token: ["ptk_Zr8v…", null],
  "exec.token": ["ttk_Zr8v…"],
  "ssh.token": ["sat_Zr8v…"],

  // SSH and ports.
  host: ["rooms.example.org"],
  "ssh.port": [2222],
  username: [`${WORKER}@${ROOM}`],
  ssh_command: [`ssh -p 2222 ${WORKER}@${ROOM}@rooms.example.org`],
  sessions: [1],
  algorithm: ["ssh-ed25519"],
  public_key: ["ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIHUoB5TV0m0d6mFwC0ZfL0nX2bq3mJm1xJdJ0rYt7yQh laptop"],
  fingerprint: ["SHA256:8+ro+K8XvpWQaBU07YlerUdcJJ7BlROEKKMiKu3mnCc"],
  host_key_fingerprint: ["SHA256:R0CuY0ewFywBJU/1W65a/1GZ9ERuf21kPUAYWz9HUUU"],
  port: [8000],
  url: [`https://${LABEL}.ports.example.org/`],
  path_url: [`${PUBLIC_URL}/p/${LABEL}/`],
  listening: [true],

  // Messages and barriers.
  source: ["planner", "rest"],
  destination: [WORKER],
  destinations: [null],
  topic: [null],
  topics: [["build.*"]],
  kind: ["request"],
  payload: [{ path: "/results/report.txt" }],
  payload_b64: [null],
  headers: [{ trace: "nightly-7" }],
  "message.size_bytes": [30],
  reply_to: [null],
  "reply.message_id": ["msg_01KG9Z2CF0Z7C2F5J8M3Q6T9VX"],
  "reply.seq": [42],
  "reply.source": [WORKER],
  "reply.destination": ["planner"],
  "reply.kind": ["response"],
  "reply.payload": [{ ok: true }],
  "reply.size_bytes": [11],
  "reply.reply_to": [MESSAGE],
  "reply.attempt": [null],
  ack_required: [false],
  attempt: [1],
  seq: [41],
  recipient_count: [1],
  sandbox_state: ["running"],
  inbox_depth: [0],
  "waiting_on.type": ["barrier"],
  "waiting_on.id": ["merged"],
  generation: [1],
  parties: [2],
  participants: [["planner", WORKER]],
  arrived: [["planner"]],
  missing: [[WORKER]],
  waited_ms: [2180],

  // The drive.
  path: ["/notes.txt"],
  guest_path: ["/mnt/drive/notes.txt"],
  size_bytes: [TEXT.length],
  length: [TEXT.length],
  content: [TEXT],
  content_b64: [Buffer.from(TEXT).toString("base64")],
  eof: [true],
  created: [true],
  sha256: [hashOf(TEXT)],

  // Usage.
  entitled: [true],
  "rooms.active": [1],
  "rooms.soft_cap": [50],
  "rooms.hard_cap": [100],
  "sandboxes.active": [1],
  "sandboxes.soft_cap": [100],
  "sandboxes.hard_cap": [200],
  "memory_mib.allocated": [512],
  "memory_mib.soft_cap": [163_840],
  "memory_mib.hard_cap": [327_680],
  "disk_gib.allocated": [4],
  "disk_gib.soft_cap": [1000],
  "disk_gib.hard_cap": [2000],
  "drive.soft_cap_bytes": [107_374_182_400],
  "drive.hard_cap_bytes": [214_748_364_800],
  "guest_cids.in_use": [1],
  "guest_cids.total": [900],
  "totals.sandbox_seconds": [1795.214],
  "totals.vcpu_seconds": [1795.214],
  "totals.memory_mib_seconds": [919_149.568],
  "totals.exec_count": [12],
  "totals.messages": [34],
  "totals.egress_bytes": [18_350_080],
  "totals.drive_byte_hours": [2_621_440],
  "group.id": [ROOM_UID],
  "group.name": [ROOM],
  others: [null],
  "credits.granted": [1000],
  "credits.used": [12.5],
  "credits.remaining": [987.5],
  "can_create.room": [true],
  "can_create.sandbox": [true],

  next_cursor: [null],
  cursor: ["NDI.y6qQ0mVt"],

  // The audit.
  event: ["message.sent"],
  "event.count": [34],
  "agent.count": [48],
  "error.code": ["path_not_found"],
  "error.count": [1],
  outcomes: [{ success: 47, denied: 0, error: 1 }],
  total: [48],
  text: [SUMMARY],
  ip: ["203.0.113.7"],
  status: ["ok", 202],
  error_code: [null],
  "audit.duration_ms": [3.18],
  details: [
    { kind: "request", destination: WORKER, size_bytes: 30, payload_sha256: hashOf('{"path":"/results/report.txt"}') },
  ],
  hash: [hashOf("record 41")],
  prev_hash: [hashOf("record 40")],
  ok: [true],
  from_seq: [1],
  to_seq: [48],
  broken_at: [null],
};

const NEW_KEY = {
  key_id: "kid_01KGA0G5A0P3S6V9Y2B5E8H4KM",
  key_prefix: "key-T5nw8Rc2",
  key: "key-T5nw8Rc2…",
  created_at: LOOKED,
  last_used_at: null,
};
/** As it was made, with one entry. */
const FIRST_EGRESS = { allowlist: ["deb.debian.org:443"], revision: 1 };
const DONE = { finished_at: at("12:01:41.903"), duration_ms: 41_903, stdin_open: false };
const RESULTS = {
  path: "/results",
  guest_path: "/mnt/drive/results",
  name: "results",
  type: "directory",
  size_bytes: 4096,
  mode: "0755",
};
const REPLY = { message_id: "msg_01KG9Z2CF0Z7C2F5J8M3Q6T9VX", seq: 42, deliveries: [{ agent_id: "planner" }] };
const BOTH = { arrived: ["planner", WORKER], missing: [] };
const SSH_KEY = { name: "laptop", expires_at: null };

/** What differs from that in an operation's answer, by its outcome; of outcomes of one status that of the first here is shown. */
export const ANSWERS: { [Name in keyof typeof operations]?: Record<string, object> } = {
  health: {
    unavailable: {
      status: "unavailable",
      ready: false,
      checks: [
        {
          id: "templates",
          status: "fail",
          message: "There is no template.",
          remedy: "Run `roomd template build default`.",
        },
      ],
    },
  },
  config_get: {
    ok: {
      limits: {
        guest_cid_min: 9100,
        guest_cid_max: 9999,
        memory_mib_min: 128,
        memory_mib_max: 65_536,
        vcpu_count_max: 16,
        ports_per_sandbox_max: 16,
        message_payload_bytes_max: 65_536,
        list_limit_max: 1000,
      },
      defaults: { template_id: "default", vcpu_count: 1, exec_timeout_ms: 30_000, egress: "public" },
      plans: {
        starter: {
          rooms: { soft_cap: 50, hard_cap: 100 },
          sandboxes: { soft_cap: 100, hard_cap: 200 },
          memory_mib: { soft_cap: 163_840, hard_cap: 327_680 },
          disk_gib: { soft_cap: 1000, hard_cap: 2000 },
          drive: { soft_cap_bytes: 107_374_182_400, hard_cap_bytes: 214_748_364_800 },
          credits: 1000,
        },
      },
      prices: { sandbox_hour: 1, vcpu_hour: 2, memory_gib_hour: 1, egress_gib: 1, drive_gib_month: 1 },
      api_extensions: API_EXTENSIONS,
      guarantees: GUARANTEES.slice(0, 2),
      non_guarantees: NON_GUARANTEES.slice(0, 2),
    },
  },
  openapi_get: { ok: { openapi: "3.1.0", info: { title: "roomd", version: "0.1.0" }, paths: {} } },
  key_create: {
    created: {
      ...NEW_KEY,
      name: "reader",
      scopes: ["rooms:read", "drive:read"],
      expires_at: "2026-02-01T12:30:00.000Z",
    },
  },
  key_rotate: { created: { ...NEW_KEY, replaces: { replaced_by: NEW_KEY.key_id, expires_at: at("12:40:00.000") } } },
  key_revoke: { ok: { state: "revoked", revoked_at: LOOKED } },
  ssh_key_add: { created: SSH_KEY },
  ssh_key_list: { ok: { items: [SSH_KEY] } },
  ssh_access_create: { created: { created_at: LOOKED, expires_at: at("12:40:00.000") } },
  room_create: { created: { sandbox_count: 0, drive: { used_bytes: 0, file_count: 0 } } },
  room_destroy: { destroying: { state: "destroying", duration_ms: 30_000 } },
  sandbox_create: {
    created: { ports: [], egress: FIRST_EGRESS },
    accepted: {
      state: "starting",
      status: { reason: "starting", message: "The sandbox is starting.", last_transition_at: at("12:00:05.031") },
      ready_at: null,
      create_wall_ms: null,
      boot: {},
      start_mode: null,
      ports: [],
      egress: FIRST_EGRESS,
    },
  },
  sandbox_update: { ok: { labels: { team: "search", role: "builder" } } },
  sandbox_standby: {
    paused: {
      state: "paused",
      status: { reason: "paused", message: "The sandbox is paused.", last_transition_at: LOOKED },
    },
  },
  sandbox_exec: {
    exited: {
      exec_id: "exe_01KG9YV230C7F3H6K9N2Q5T8VW",
      exit_code: 0,
      stdout_bytes: TEXT.length,
      finished_at: at("12:01:00.012"),
      duration_ms: 12,
    },
  },
  execution_start: { started: { stdout_bytes: 0, last_seq: 0 } },
  execution_stdin: { ok: { stdin_bytes: TEXT.length, stdin_open: false } },
  execution_end: { ended: { ...DONE, state: "exited", pid: null, signal: "SIGTERM" } },
  terminal_close: { ended: { signal: "SIGHUP" } },
  sandbox_expose_port: { created: { listening: false } },
  fs_write: { replaced: { created: false } },
  file_put: { replaced: { created: false } },
  fs_list: { ok: { path: "/" } },
  fs_mkdir: {
    created: RESULTS,
    existing: { ...RESULTS, created: false },
  },
  fs_move: { ok: { path: "/final.txt", guest_path: "/mnt/drive/final.txt", name: "final.txt" } },
  agent_send: {
    accepted: { reply: null },
    replied: { state: "acked", deliveries: [{ state: "acked" }] },
  },
  message_get: { ok: { attempt: null } },
  message_ack: { ok: { state: "acked" } },
  message_reply: {
    accepted: REPLY,
    known: REPLY,
  },
  org_audit_summary: { ok: { text: SUMMARY.replace(`Room ${ROOM}`, "The organization") } },
  barrier_arrive: { released: { ...BOTH, state: "released" }, waiting: { waited_ms: 0, released_at: null } },
  barrier_cancel: { cancelled: { state: "cancelled", ended_at: LOOKED } },
};
