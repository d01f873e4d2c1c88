/** Interface of sandboxes. */
import { type Static, Type } from "@sinclair/typebox";
import { AGENT_PATTERN, GUEST_CID_MAX, GUEST_CID_MIN, NAME_PATTERN } from "../ids.ts";
import { fields, NONE, nullable, oneOf, operation, page, pageQuery, record, timestamp } from "./contract.ts";
import type { ErrorCode } from "./errors.ts";
import { actor, anyWarnings, labelFilter, labels, roomId, roomPath, status } from "./rooms.ts";
import { shownPort } from "./shown-port.ts";

export const MEMORY_MIB_MIN = 128;
export const MAX_ENV_NAMES = 128;
export const MAX_ENV_VALUE_BYTES = 32 * 1024;
export const MAX_ENV_BYTES = 128 * 1024;
export const ENV_NAME_PATTERN = "^[A-Za-z_]\\w{0,127}$";
export const RESERVED_ENV_PREFIX = "ROOMD_";
export const MAX_EGRESS_ENTRIES = 256;

export const agentId = Type.String({
  pattern: AGENT_PATTERN,
  description: "The agent that the sandbox serves; unique among the room's live sandboxes.",
  examples: ["worker-1"],
});

export const guestCid = Type.Integer({
  minimum: GUEST_CID_MIN,
  maximum: GUEST_CID_MAX,
  code: "guest_cid_out_of_range",
  description: "Address of the guest, unique on the host.",
  examples: [9100],
});

/** Rules beyond the shape (names, sizes, reserved prefix) are in daemon/domain/sandboxes/executions/run/environment.ts. */
export const environment = Type.Optional(
  Type.Record(Type.String(), Type.String(), {
    code: "invalid_env_json",
    description: "Environment variables; ROOMD_ names are reserved.",
  }),
);
export const environmentJson = Type.Optional(
  Type.String({ code: "invalid_env_json", description: "The same as a JSON string. Not together with env." }),
);

export const egressEntryList = Type.Array(Type.String(), {
  maxItems: MAX_EGRESS_ENTRIES,
  code: "invalid_egress_entry",
  description:
    "Allowed destinations: addresses, CIDR, host names, *.example.org, each with optional :port; * is every public address.",
});
const egressEntries = Type.Optional(egressEntryList);
const egressEntriesJson = Type.Optional(
  Type.String({ code: "invalid_egress_entry", description: "The same as a JSON string." }),
);

/** Action on an idle sandbox. */
export const ON_IDLE = ["destroy", "standby", "hibernate"] as const;
export type OnIdle = (typeof ON_IDLE)[number];

/** Reasons for waking a sandbox from standby or hibernation. */
export const WAKE_REASONS = ["api", "terminal", "message", "port"] as const;
export type WakeReason = (typeof WAKE_REASONS)[number];

/** Additional errors of a call that has to wake a sandbox first. */
export const WAKING_ERRORS = [
  "quota_exceeded",
  "insufficient_capacity",
  "snapshot_incompatible",
  "not_ready",
  "drive_full",
] as const satisfies ErrorCode[];
/** Errors of a call that reaches a guest, and wakes it first. */
export const REACH_ERRORS = [
  "room_not_found",
  "sandbox_not_found",
  "invalid_state",
  "room_destroying",
  "guest_unreachable",
  "disk_full",
  ...WAKING_ERRORS,
] as const satisfies ErrorCode[];

const timeouts = {
  idle_timeout_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_592_000,
      description:
        "A running sandbox is idle after this time without use: calls, terminals, SSH, traffic of its ports and to the internet, messages to it, and commands that a client waits for or follows. A started command that no client follows counts only while the sandbox used more than 1 % of a CPU over the last minute. lifecycle.on_idle is the action then; by default the sandbox ends. Time in standby does not count, and resume restarts the clock.",
    }),
  ),
  max_duration_seconds: Type.Optional(
    Type.Integer({
      minimum: 1,
      maximum: 2_592_000,
      description: "Ends the sandbox this long after its creation, whatever it does, also in standby.",
    }),
  ),
};

const onIdle = oneOf(ON_IDLE, {
  description:
    "Action when it is idle: destroy (the default), standby, hibernate. If it cannot be saved, it keeps running, status has the reason, and saving is retried later.",
});
const wakeOn = Type.Array(oneOf(WAKE_REASONS), {
  maxItems: WAKE_REASONS.length,
  description:
    "Calls and events that resume it from standby or hibernation: api is a call that uses it, terminal a terminal or SSH, message a message to its agent's inbox, port a request to an exposed port. By default all four; a list is exact, and with [] only resume wakes it. Calls and requests wait until it runs, or fail with the reason. The sender of a message does not wait. Metrics, lists and records wake nothing.",
});
/** At create and by PATCH. */
const lifecycleInput = Type.Optional(
  Type.Object(
    {
      idle_after_seconds: Type.Optional(nullable(timeouts.idle_timeout_seconds)),
      on_idle: Type.Optional(onIdle),
      wake_on: Type.Optional(wakeOn),
    },
    { additionalProperties: false, description: "When it is idle, the action then, and the triggers that wake it." },
  ),
);

const LIVE = ["creating", "starting", "running", "pausing", "paused", "hibernating", "hibernated", "resuming"] as const;
export const SANDBOX_STATES = [...LIVE, "failed", "destroying", "destroyed"] as const;
export type SandboxState = (typeof SANDBOX_STATES)[number];
/** States in which it runs or can run again. */
export const LIVE_STATES: readonly SandboxState[] = LIVE;

export const EXIT_CAUSES = [
  "user_requested",
  "expired",
  "idle",
  "oom",
  "guest_panic",
  "vmm_crash",
  "host_restart",
  "credits_exhausted",
  "host_evacuated",
] as const;
export type ExitCause = (typeof EXIT_CAUSES)[number];

export const START_MODES = ["pool", "snapshot", "cold"] as const;
export type StartMode = (typeof START_MODES)[number];

export const sandbox = record("Sandbox", {
  sandbox_id: Type.String(),
  room_id: roomId,
  agent_id: agentId,
  guest_cid: Type.Integer(),
  template_id: Type.String(),
  template_digest: nullable(Type.String()),
  snapshot_id: nullable(
    Type.String({
      description:
        "The snapshot from which it was created, to which it was rolled back, or which was taken of it last.",
    }),
  ),
  vcpu_count: Type.Integer(),
  memory_mib: Type.Integer(),
  state: oneOf(SANDBOX_STATES),
  status,
  exit: nullable(fields({ cause: oneOf(EXIT_CAUSES), at: timestamp })),
  env_keys: Type.Array(Type.String()),
  egress: fields({
    mode: oneOf(["none", "allowlist", "public"]),
    allowlist: Type.Array(Type.String()),
    revision: Type.Integer(),
  }),
  fabric_attached: Type.Boolean(),
  drive_mount: Type.String(),
  drive: fields({
    state: oneOf(["ok", "degraded"], {
      description: "degraded: commands that use the drive wait or fail until it is back; others run.",
    }),
    message: nullable(Type.String()),
  }),
  ports: Type.Array(shownPort),
  labels,
  lifecycle: fields({ idle_after_seconds: nullable(Type.Integer()), on_idle: onIdle, wake_on: wakeOn }),
  created_at: timestamp,
  started_at: nullable(timestamp),
  ready_at: nullable(timestamp),
  stopped_at: nullable(timestamp),
  expires_at: nullable(timestamp),
  create_wall_ms: nullable(Type.Integer()),
  boot: Type.Record(Type.String(), Type.Number(), { description: "Time per stage of create, in fields ending _ms." }),
  start_mode: nullable(oneOf(START_MODES)),
  created_by: actor,
});
export type SandboxRecord = Static<typeof sandbox>;

export const sandboxPath = fields({
  room_id: roomId,
  sandbox: Type.String({
    pattern: NAME_PATTERN,
    description: "agent_id of a live sandbox of the room, or its sandbox_id.",
  }),
});

export const sandboxCreate = operation({
  name: "sandbox_create",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/from-template",
  aliases: ["/v1/rooms/{room_id}/sandboxes"],
  summary: "Create a sandbox from a template",
  description:
    "Starts a virtual machine from the template's snapshot, with the room's drive at /mnt/drive. POST /v1/rooms/{room_id}/sandboxes is the same call.",
  access: "sandboxes:write",
  params: roomPath,
  query: fields({
    wait: Type.Optional(
      oneOf(["ready", "none"], {
        description: "ready (the default): answer when it can run commands. none: answer immediately.",
      }),
    ),
    wait_timeout_ms: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 60_000, description: "Longest wait; 60 000 if absent." }),
    ),
  }),
  body: fields({
    agent_id: agentId,
    guest_cid: Type.Optional(
      Type.Integer({ ...guestCid, description: "Address of the guest, unique on the host. Default: a free one." }),
    ),
    memory_mib: Type.Optional(
      Type.Integer({
        minimum: MEMORY_MIB_MIN,
        code: "memory_mib_out_of_range",
        description:
          "Memory in MiB; /v1/config has the host's limit. Default: the template's default_memory_mib, or the snapshot's.",
        examples: [512],
      }),
    ),
    vcpu_count: Type.Optional(Type.Integer({ minimum: 1, description: "1 if absent, at most the host's cores." })),
    template_id: Type.Optional(
      Type.String({ minLength: 1, maxLength: 128, description: 'Which template; "default" if absent.' }),
    ),
    snapshot_id: Type.Optional(
      Type.String({
        pattern: "^[A-Za-z0-9_]{1,64}$",
        description:
          "Snapshot of the room, in place of a template. memory_mib and vcpu_count are then those of the snapshot; env is added to that of its sandbox, and absent fields are as they were in it.",
      }),
    ),
    env: environment,
    env_json: environmentJson,
    egress_allowlist: egressEntries,
    egress_allowlist_json: egressEntriesJson,
    labels: Type.Optional(labels),
    ...timeouts,
    lifecycle: lifecycleInput,
    attach_fabric: Type.Optional(Type.Boolean({ description: "Whether the guest reaches its room; true if absent." })),
    enable_guest_net: Type.Optional(Type.Boolean({ description: "false: no egress at all; true if absent." })),
  }),
  output: fields({ ...sandbox.properties, warnings: anyWarnings }),
  outcomes: { created: 201, accepted: 202 },
  location: "/v1/rooms/{room_id}/sandboxes/{sandbox_id}",
  errors: [
    "room_not_found",
    "room_destroying",
    "invalid_state",
    "source_mismatch",
    "agent_id_in_use",
    "guest_cid_in_use",
    "guest_cid_out_of_range",
    "memory_mib_out_of_range",
    "memory_below_template_minimum",
    "template_not_found",
    "snapshot_not_found",
    "snapshot_incompatible",
    "invalid_env_json",
    "reserved_env_key",
    "invalid_egress_entry",
    "conflicting_fields",
    "quota_exceeded",
    "guest_unreachable",
    "insufficient_capacity",
    "not_ready",
    "drive_full",
    "disk_full",
  ],
  audit: "sandbox.created",
  example: {
    body: {
      agent_id: "worker-1",
      memory_mib: 512,
      env: { LANG: "C.UTF-8" },
      egress_allowlist: ["packages.example.com:443"],
      labels: { team: "search" },
    },
  },
});

export const sandboxList = operation({
  name: "sandbox_list",
  extension: "sandbox.list",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes",
  summary: "List a room's sandboxes",
  access: "sandboxes:read",
  params: roomPath,
  query: fields({ state: Type.Optional(oneOf(SANDBOX_STATES)), label: labelFilter, ...pageQuery }),
  body: null,
  output: page(sandbox),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "sandbox.listed",
});

export const orgSandboxList = operation({
  name: "org_sandbox_list",
  extension: "sandbox.list",
  method: "GET",
  path: "/v1/sandboxes",
  summary: "List sandboxes of all rooms",
  description: "The sandboxes of the organization that the key can see, oldest first.",
  access: "sandboxes:read",
  params: NONE,
  query: fields({
    room_id: Type.Optional(Type.String({ description: "Only the sandboxes of this room." })),
    state: Type.Optional(oneOf(SANDBOX_STATES)),
    label: labelFilter,
    ...pageQuery,
  }),
  body: null,
  output: fields({ items: Type.Array(sandbox), next_cursor: nullable(Type.String()), warnings: anyWarnings }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "invalid_cursor"],
  audit: "sandbox.listed",
});

export const sandboxGet = operation({
  name: "sandbox_get",
  extension: "sandbox.get",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}",
  summary: "Get a sandbox",
  access: "sandboxes:read",
  params: sandboxPath,
  query: fields({
    wait_ms: Type.Optional(
      Type.Integer({ minimum: 0, maximum: 50_000, description: "How long to wait while it is starting." }),
    ),
  }),
  body: null,
  output: sandbox,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "sandbox.read",
});

export const sandboxUpdate = operation({
  name: "sandbox_update",
  extension: "sandbox.update",
  method: "PATCH",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}",
  summary: "Change a sandbox's labels and timeouts",
  description: "Absent fields stay as they are. null removes a timeout.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: fields({
    labels: Type.Optional(labels),
    idle_timeout_seconds: Type.Optional(nullable(timeouts.idle_timeout_seconds)),
    max_duration_seconds: Type.Optional(nullable(timeouts.max_duration_seconds)),
    expires_in_seconds: Type.Optional(
      nullable(
        Type.Integer({
          minimum: 1,
          maximum: 2_592_000,
          description: "Ends the sandbox this long after now, in place of max_duration_seconds; null: never.",
        }),
      ),
    ),
    lifecycle: lifecycleInput,
  }),
  output: sandbox,
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found", "invalid_state", "room_destroying", "conflicting_fields"],
  onFullDisk: true,
  audit: "sandbox.updated",
  example: { body: { labels: { team: "search", role: "builder" } } },
});

export const sandboxDestroy = operation({
  name: "sandbox_destroy",
  method: "DELETE",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}",
  summary: "Destroy a sandbox",
  description: "Works in every state. Its guest_cid is free when the call returns.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: fields({
    agent_id: agentId,
    sandbox_id: Type.String(),
    guest_cid: Type.Integer(),
    state: oneOf(["destroyed"]),
  }),
  outcomes: { destroyed: 200 },
  errors: ["room_not_found", "sandbox_not_found", "not_ready"],
  audit: "sandbox.destroyed",
});

export const sandboxStandby = operation({
  name: "sandbox_standby",
  extension: "sandbox.standby",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/standby",
  summary: "Pause a sandbox",
  description:
    "Puts it in standby: it uses no CPU and keeps its memory, processes, guest_cid and drive. Running commands and their timeouts are paused too, and calls that wait for them are answered after resume. In standby the drive, logs, metrics, labels and timeouts can be used; a call that uses it, such as exec, resumes it first; without api in lifecycle.wake_on it is 409 invalid_state until POST …/resume.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: sandbox,
  outcomes: { paused: 200 },
  errors: ["room_not_found", "sandbox_not_found", "invalid_state", "room_destroying", "guest_unreachable"],
  audit: "sandbox.standby",
});

export const sandboxResume = operation({
  name: "sandbox_resume",
  extension: "sandbox.standby",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/resume",
  summary: "Resume a sandbox in standby or hibernation",
  description:
    "Its processes continue where they were. The wall clock is corrected before the call returns; the monotonic clock does not count the pause. A hibernated sandbox needs memory again.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: sandbox,
  outcomes: { resumed: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "invalid_state",
    "room_destroying",
    "quota_exceeded",
    "insufficient_capacity",
    "snapshot_incompatible",
    "not_ready",
    "drive_full",
    "guest_unreachable",
  ],
  audit: "sandbox.resume",
});

export const sandboxHibernate = operation({
  name: "sandbox_hibernate",
  extension: "sandbox.hibernate",
  method: "POST",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/hibernate",
  summary: "Hibernate a sandbox",
  description:
    "Saves its memory and devices to disk and ends its processes; a sandbox in standby is resumed for it. It uses no memory and no CPU, survives a restart of the host, and keeps its ports and files. While it hibernates, its guest_cid is free: a resume assigns it again, or another one if it is in use. Resume continues it; connections are closed, and programs in /etc/roomd/after-restore.d are run. If it cannot be saved, it keeps running.",
  access: "sandboxes:write",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: sandbox,
  outcomes: { hibernated: 200 },
  errors: [
    "room_not_found",
    "sandbox_not_found",
    "invalid_state",
    "room_destroying",
    "guest_unreachable",
    "drive_full",
    "disk_full",
  ],
  audit: "sandbox.hibernated",
});

export const sandboxLogs = operation({
  name: "sandbox_logs",
  extension: "sandbox.logs",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/logs",
  summary: "Read a sandbox's console or agent log",
  access: "sandboxes:read",
  params: sandboxPath,
  query: fields({
    source: Type.Optional(oneOf(["console", "agent"], { description: "console if absent." })),
    after: Type.Optional(Type.Integer({ minimum: 0, description: "Byte offset: next_after of the previous answer." })),
    limit: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: 1000,
        description: "Most lines; 1000 if absent. An answer ends after 256 KiB.",
      }),
    ),
  }),
  body: null,
  output: fields({
    source: oneOf(["console", "agent"]),
    items: Type.Array(fields({ offset: Type.Integer(), line: Type.String({ description: "Its first 8 KiB." }) })),
    next_after: Type.Integer(),
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found"],
  audit: "sandbox.logs_read",
});

export const sandboxMetrics = operation({
  name: "sandbox_metrics",
  extension: "sandbox.metrics",
  method: "GET",
  path: "/v1/rooms/{room_id}/sandboxes/{sandbox}/metrics",
  summary: "Measure a sandbox",
  description: "In standby clock_skew_ms is null.",
  access: "sandboxes:read",
  params: sandboxPath,
  query: NONE,
  body: null,
  output: fields({
    cpu: fields({ vcpu_count: Type.Integer(), used_seconds: Type.Number() }),
    memory: fields({ memory_mib: Type.Integer(), resident_bytes: Type.Integer() }),
    disk: fields({ used_bytes: Type.Integer() }),
    clock_skew_ms: nullable(Type.Number()),
    at: timestamp,
  }),
  outcomes: { ok: 200 },
  errors: ["room_not_found", "sandbox_not_found", "invalid_state", "guest_unreachable"],
  audit: "sandbox.measured",
});
