/**
 * Messages between host and guest agent: the handshake, and the methods that open a stream.
 *
 *     agent                          host
 *       ── hello ───────────────────▶      my CID and generation; with a secret, a challenge and the proof of having it
 *       ◀────────────────── welcome ──     a secret (first time) or the proof of having it; entropy, clock, names, drive;
 *                                          and whether the guest was restored
 *       ── ready ───────────────────▶      set up, drive mounted, and the nonce that proves me to the host
 *       ◀───────────── open{method} ──     any number of streams, see link.ts
 *       ── open{method} ────────────▶      requests of the guest to the host, see GuestRequest
 */

import type { FileRequest } from "./files.ts";

/** Increased when older agents can no longer be supported; VERSIONING.md has the rules. */
export const GENERATION = 3;
/** The oldest generation that this host supports. */
export const OLDEST_GENERATION = 1;
/**
 * From this generation on the agent dials ports that only root may listen on, and requires a proof of the host's identity (host-proof.ts).
 */
export const PROOF_GENERATION = 2;
/**
 * From this generation on the agent dials from a port below RESERVED_PORTS, and its hello proves that it has the secret (host-proof.ts).
 */
export const AGENT_PROOF_GENERATION = 3;

/** The vsock port on which the host listens; the agent dials it at CID 2. Only root may listen on ports below 1024 (vsock(7)). */
export const HOST_PORT = 1016;
/** Ports below this number are reserved: processes of a guest or a host need CAP_NET_BIND_SERVICE to bind them (vsock(7)). */
export const RESERVED_PORTS = 1024;
/** Daemons that share the kernel's vsock have one port each, from HOST_PORT on; the agent tries this many. */
export const HOST_PORTS = 8;
/** The first of the HOST_PORTS ports that agents before PROOF_GENERATION dial: any user of the host may listen there. */
export const OPEN_HOST_PORT = 1024;

/** The line on the serial console that reports that a template guest is frozen and may be saved. */
export const TEMPLATE_READY_LINE = "roomd-agent: template ready";

/**
 * On the serial console, if a template guest cannot be saved: the reason, on the same line, then the last lines of its programs' output,
 * and an empty line.
 */
export const TEMPLATE_FAILED_LINE = "roomd-agent: template failed: ";

/** Typed on the serial console of a clone without a sandbox: the clone rehearses its set-up. */
export const REHEARSE_LINE = "rehearse";

/** Printed by a clone that would also rehearse with a vsock device and a drive, and waits for them for a moment. */
export const DEVICES_WANTED_LINE = "roomd-agent: would rehearse with devices";

/** Printed by a clone once it has rehearsed. */
export const REHEARSED_LINE = "roomd-agent: rehearsed";

/** Tag of the drive for a rehearsal. */
export const REHEARSAL_TAG = "rehearsal";

/** Kernel command line flag: the guest boots to become a template. */
export const TEMPLATE_FLAG = "roomd.template=1";

/** Kernel command line flag: the guest boots to run its recipe's steps. The recipe's services are not started. */
export const STEPS_FLAG = "roomd.steps=1";

/** Next to the agent, if the root file system is that of an image: the defaults of its commands. */
export const IMAGE_DEFAULTS_FILE = "image.json";

export interface ImageDefaults {
  env: Record<string, string>;
  cwd: string | null;
  /** A user name or number, optionally followed by a colon and the group. */
  user: string | null;
  /** Its entry point with its arguments, if the recipe starts it. */
  start: string[] | null;
}

export interface Hello {
  generation: number;
  version: string;
  /** Empty. Before PROOF_GENERATION the nonce of Ready, which the agent disclosed to any answering process. */
  nonce: string;
  /**
   * The challenge that the host has to prove itself over: fresh random hex. Absent while the agent has no secret, before its first welcome.
   */
  challenge?: string;
  /**
   * With the challenge, from AGENT_PROOF_GENERATION on: proof that the agent has the secret (guestProof in host-proof.ts). Two if the ready
   * after a restore may be lost: by the new secret, and by the previous one.
   */
  proofs?: string[];
  /** The CID that the guest's own vsock device reports. */
  guest_cid: number;
  /** False until the first welcome has been carried out. */
  set_up: boolean;
  /** The agent carries out Welcome.restored. Absent from older agents. */
  restores?: true;
}

/** How a guest was restored from saved memory. */
export interface Restored {
  /** The same sandbox resumed, the same sandbox in an earlier state, or a new sandbox. */
  how: "resumed" | "rolled_back" | "forked";
  /**
   * Hex of 32 random bytes, unless the guest was resumed: the secret with which the host proves itself from then on. The proof in the same
   * message is by the previous secret.
   */
  secret?: string;
}

export interface Welcome {
  generation: number;
  /** Hex of 32 random bytes, in the first welcome: the secret with which the host proves itself from then on. */
  secret?: string;
  /** Proof that the host has the secret: host-proof.ts over the hello's challenge. Present in every welcome that answers a challenge. */
  proof?: string;
  /** Base64 of at least 64 random bytes, for the kernel's pool: clones must not share their random state. */
  entropy_b64: string;
  /** Wall clock, in nanoseconds since the Unix epoch as a decimal string (beyond a double's precision). */
  clock_ns: string;
  hostname: string;
  /** 32 hex digits. */
  machine_id: string;
  /** Environment of every command. */
  env: Record<string, string>;
  /** The virtiofs share to mount, or null when there is none. */
  drive: { tag: string; mount_point: string } | null;
  /** The memory of the sandbox, from which kernel limits are derived. Absent from older hosts: then the kernel's own figure applies. */
  memory_mib?: number;
  /** Whether the guest has a network, however limited; absent: no network. */
  egress?: boolean;
  /** Whether the guest can reach its room's API; absent: it cannot. */
  room?: boolean;
  /** After a restore, until the host has received a ready. If it brings a secret, it is carried out once. */
  restored?: Restored;
}

/**
 * Each secret has its own nonce, made after the entropy of the welcome that brings it: an earlier one would be the same in every clone. A
 * host that reconnects recognises the guest by it. `before` is the nonce of the previous secret, if the welcome brought another.
 */
export type Ready =
  | { ok: true; nonce: string; before?: string; stages_ms: Record<string, number> }
  | { ok: false; error: string };

export interface ExecRequest {
  method: "exec";
  exec_id: string;
  argv: string[];
  cwd: string | null;
  env: Record<string, string>;
  /** User name or numeric id; null: root. */
  user: string | null;
  timeout_ms: number;
  /** No time limit; older agents ignore this field and apply timeout_ms. Absent: false. */
  unlimited?: boolean;
  /** Whether the host will send stdin; otherwise the command reads end of file immediately. */
  stdin: boolean;
}

/** Sent by the agent on an exec stream once the process exists. */
export interface ExecStarted {
  type: "started";
  pid: number;
  at_ms: number;
}

/** Sent by the host on an exec stream. */
export interface ExecSignal {
  type: "signal";
  /** Signal name, e.g. `SIGINT`. */
  signal: string;
}

export interface ExecResult {
  exit_code: number | null;
  /** Signal name, e.g. `SIGKILL`, when a signal ended the command. */
  signal: string | null;
  timed_out: boolean;
  started_at_ms: number;
  finished_at_ms: number;
}

/**
 * Starts an execution. The agent retains its process, state and output, whatever happens to this stream. A repeated request with the same
 * exec_id and fingerprint refers to the same execution, and never starts a second run.
 */
export interface ExecStartRequest {
  method: "exec_start";
  exec_id: string;
  /** Digest of the request, which distinguishes a retry from another request. */
  fingerprint: string;
  argv: string[];
  cwd: string | null;
  env: Record<string, string>;
  /** User name or numeric id; null: root. */
  user: string | null;
  timeout_ms: number;
  /** As ExecRequest's. */
  unlimited?: boolean;
  /** Whether there will be standard input; otherwise the command reads end of file immediately. */
  stdin: boolean;
  /** Whether this stream continues like that of exec_follow. */
  follow: boolean;
  /** Stored with the execution for the host, and part of its reports; at most MAX_EXEC_TAG_CHARACTERS. */
  tag?: string;
  /** The host generated exec_id for this run only: no other request uses it. Absent is false. */
  generated?: boolean;
  /** With `follow`: an execution that ends soon, without earlier output, is reported once, by its final report. Absent is false. */
  brief?: boolean;
}

/** First event of exec_start and exec_follow: the execution exists, with this state. */
export interface ExecFollowing {
  type: "following";
  execution: ExecState;
}

/** The output of an execution after a given piece, in the format of pieces.ts, on the channel `output`; ends with an ExecReport. */
export interface ExecFollowRequest {
  method: "exec_follow";
  exec_id: string;
  /** Seq of the last received piece; 0 for none. */
  after: number;
  /** Whether to wait for further output, to the execution's end. */
  follow: boolean;
  /** Nothing waits for this reader: if it is too slow, it gets history_gone. Absent is false, which older agents assume. */
  aside?: boolean;
}

/** Ends with an ExecReport. */
export interface ExecGetRequest {
  method: "exec_get";
  exec_id: string;
}

/** Executions ordered by their start, as many as fit; ends with an ExecList. */
export interface ExecListRequest {
  method: "exec_list";
  /** Number of the last known execution; 0 for none. */
  after: number;
  limit: number;
}

/** Bytes for standard input, on the channel `stdin`; ends with an ExecReport once the command's pipe has accepted them. */
export interface ExecStdinRequest {
  method: "exec_stdin";
  exec_id: string;
  /** Offset in standard input of the first byte: bytes that the agent already has are dropped. Null is its current position. */
  offset: number | null;
  /** Whether standard input ends after these bytes. */
  eof: boolean;
}

/** Sends a signal to the execution's process group; ends with an ExecReport. */
export interface ExecSignalRequest {
  method: "exec_signal";
  exec_id: string;
  signal: string;
}

/** TERM, five seconds, KILL, to all processes that the execution has started; ends with an ExecReport once it has ended. */
export interface ExecEndRequest {
  method: "exec_end";
  exec_id: string;
}

/** Stores a text with the execution, for the host; ends with an ExecReport. */
export interface ExecNoteRequest {
  method: "exec_note";
  exec_id: string;
  note: string;
}

/** Waits for executions that have ended and are not settled; ends with an ExecList. */
export interface ExecEndedRequest {
  method: "exec_ended";
  /** Ended executions that the host has recorded, and that need not be reported again. */
  settled: string[];
}

export interface ExecState {
  exec_id: string;
  /** Sequence number of the execution in this guest. */
  number: number;
  state: "running" | "exited";
  /** The command line, truncated if it is long. */
  argv: string[];
  cwd: string;
  user: string;
  pid: number | null;
  timeout_ms: number;
  exit_code: number | null;
  /** Signal name, e.g. `SIGKILL`, when a signal ended the command. */
  signal: string | null;
  timed_out: boolean;
  /** The kernel OOM-killed a process of the command. Absent: false, also from older agents. */
  oom?: boolean;
  stdout_bytes: number;
  stderr_bytes: number;
  /** Seq of the oldest stored piece, and of the last one; the first piece of an execution is 1. */
  oldest_seq: number;
  last_seq: number;
  stdin_bytes: number;
  stdin_open: boolean;
  started_at_ms: number;
  finished_at_ms: number | null;
  tag: string;
  note: string;
}

export interface ExecReport {
  execution: ExecState;
  /**
   * In the answer to exec_start: an earlier request has started it. In the report of a followed execution it is absent, meaning unknown.
   */
  existing?: boolean;
}

export interface ExecList {
  executions: ExecState[];
}

export const MAX_EXEC_TAG_CHARACTERS = 1024;

/** timeout_ms of a command without a time limit: the maximum that every agent of generation 1 accepts, 24 days. */
export const NO_TIMEOUT_MS = 2 ** 31 - 1;

/** Reads the guest's wall clock, to measure its skew. */
export interface ClockRequest {
  method: "clock";
  /** Nanoseconds by which the clock is adjusted before it is read, as a decimal string. */
  adjust_ns?: string;
}
export interface ClockResult {
  clock_ns: string;
}

/**
 * Starts a command in its own terminal, which outlives this stream and the link. Answered with TerminalOpened. Terminals and their history
 * belong to the agent: a host that reconnects requests them with terminal_list.
 */
export interface TerminalOpenRequest {
  method: "terminal_open";
  /** Generated by the host; an existing one is refused. */
  terminal_id: string;
  /** null: the user's login shell. */
  argv: string[] | null;
  cwd: string | null;
  env: Record<string, string>;
  /** User name or numeric id; null: root. */
  user: string | null;
  /** Value of TERM. */
  term: string;
  rows: number;
  cols: number;
  /** How long it may stay without an attached client; ten minutes if absent. */
  detached_life_ms?: number;
}
export interface TerminalOpened {
  pid: number;
  started_at_ms: number;
}

/**
 * Attaches to a terminal: TerminalAttached is sent first, then its bytes on channel stdout; bytes on channel stdin are typed. Ends with a
 * TerminalEnd once the command has ended and all its bytes were sent; the host detaches by ending the stream. The attached client sets the
 * pace: the command waits for a reader that is behind.
 */
export interface TerminalAttachRequest {
  method: "terminal_attach";
  terminal_id: string;
  /** Offset of the first requested byte; null: all stored bytes. */
  since: number | null;
  /** Whether to detach an already attached client; otherwise the new one is refused. */
  takeover: boolean;
}
export interface TerminalAttached {
  type: "attached";
  /** Offset of the first byte that will be sent: `since`, or the oldest stored byte if that is later. */
  offset: number;
  rows: number;
  cols: number;
}
/** Sent by the host on an attach stream, like ExecSignal: the terminal's foreground group gets the signal. */
export interface TerminalResize {
  type: "resize";
  rows: number;
  cols: number;
}
/**
 * Shows a terminal to a watcher, which is not attached and cannot type: TerminalWatching is sent first, then its bytes on channel stdout.
 * Ends as an attach stream does. Nothing waits for it: a watcher that is behind the retained history gets TerminalSkipped. Not in every
 * agent of this generation: others answer unknown_method.
 */
export interface TerminalWatchRequest {
  method: "terminal_watch";
  terminal_id: string;
  /** Offset of the first requested byte; null: all stored bytes. */
  since: number | null;
}
export interface TerminalWatching {
  type: "watching";
  /** Offset of the first byte that will be sent: `since`, or the oldest stored byte if that is later. */
  offset: number;
  rows: number;
  cols: number;
}
/** Sent on a watch stream once the bytes before `offset` were sent: the bytes from there to `to` are skipped. */
export interface TerminalSkipped {
  type: "skipped";
  offset: number;
  to: number;
}
/** Sent on a watch stream once the bytes before `offset` were sent: the terminal has another size. */
export interface TerminalResized {
  type: "resized";
  offset: number;
  rows: number;
  cols: number;
}
export interface TerminalEnd {
  exit_code: number | null;
  /** Reason for the terminal's end; absent: the command exited. */
  signal: string | null;
  ended_at_ms: number;
  /** Why the terminal ended; the command exited if absent. */
  reason?: "exited" | "detached" | "closed";
}

/** All terminals of the guest, including recently ended ones. */
export interface TerminalListRequest {
  method: "terminal_list";
}
export interface TerminalList {
  terminals: TerminalState[];
}
export interface TerminalState {
  terminal_id: string;
  /** The command, truncated to 256 characters. */
  command: string;
  user: string;
  rows: number;
  cols: number;
  started_at_ms: number;
  attached: boolean;
  /** Offset after the newest byte, which is the total number of bytes. */
  offset: number;
  end: TerminalEnd | null;
}

/**
 * Hangs up on a terminal, as the loss of a line does: HUP to its session, and after five seconds KILL to its leader; processes that have
 * detached from it keep running. Answered with a TerminalEnd once it is over; then the terminal is forgotten.
 */
export interface TerminalCloseRequest {
  method: "terminal_close";
  terminal_id: string;
  /** Ends every process that was ever started in it, including those that left its session, even if its command ended long ago. */
  everything?: boolean;
}

/**
 * Connects to a port of the guest's own loopback, of either address family. ConnectOpened is sent first; then bytes on channel stdin go to
 * the server, and its bytes come on channel stdout. Each direction ends separately; ends with null after both.
 */
export interface ConnectRequest {
  method: "connect";
  port: number;
}
export interface ConnectOpened {
  type: "connected";
}

/**
 * Connects to a Unix socket in the guest, by an absolute path, with the rights of the default user of commands, without that user's
 * supplementary groups. Continues as ConnectRequest does. Older agents without it answer unknown_method.
 */
export interface SocketConnectRequest {
  method: "socket_connect";
  path: string;
}
/** The kernel's maximum length of a path. */
export const MAX_SOCKET_PATH_BYTES = 4095;

/**
 * Connects to the screen of a guest that has one, an RFB server on SCREEN_SOCKET. Continues as ConnectRequest does. Not every agent of this
 * generation supports it: others answer unknown_method.
 */
export interface ScreenConnectRequest {
  method: "screen_connect";
}
/** The Unix socket of the guest's screen. Templates with a screen have an RFB server there that requires no password. */
export const SCREEN_SOCKET = "/run/roomd-desktop/rfb";

/** Queries which of these ports have a listener that `connect` would reach. */
export interface ListeningRequest {
  method: "listening";
  ports: number[];
}
export interface ListeningResult {
  ports: number[];
}

/** Syncs and powers the guest off. */
export interface PowerOffRequest {
  method: "power_off";
}

/**
 * Flushes all writes to the guest's own disk and blocks writers, until DiskThawRequest or for FREEZE_MS at most. Unknown to older agents.
 */
export interface DiskFreezeRequest {
  method: "disk_freeze";
}

export interface DiskThawRequest {
  method: "disk_thaw";
}
export interface DiskThawResult {
  /** Whether the disk had stayed frozen until then. */
  in_time: boolean;
}

/** Maximum time for which a guest's own disk is frozen, by the guest's clock. */
export const FREEZE_MS = 10_000;

/** The host's end of the drive has died. The guest unmounts the drive, which no longer responds. */
export interface DriveLostRequest {
  method: "drive_lost";
}

/** A new host end of the drive is plugged: the guest mounts it. Idempotent. */
export interface DriveMountRequest {
  method: "drive_mount";
  /** As in Welcome. */
  tag: string;
  mount_point: string;
}

export type HostRequest =
  | ExecRequest
  | ExecStartRequest
  | ExecFollowRequest
  | ExecGetRequest
  | ExecListRequest
  | ExecStdinRequest
  | ExecSignalRequest
  | ExecEndRequest
  | ExecNoteRequest
  | ExecEndedRequest
  | ClockRequest
  | PowerOffRequest
  | DriveLostRequest
  | DiskFreezeRequest
  | DiskThawRequest
  | DriveMountRequest
  | TerminalOpenRequest
  | TerminalAttachRequest
  | TerminalWatchRequest
  | TerminalListRequest
  | TerminalCloseRequest
  | ConnectRequest
  | SocketConnectRequest
  | ScreenConnectRequest
  | ListeningRequest
  | FileRequest;

/** Queries whether a name has an address. Answered with EgressResolved. */
export interface EgressResolveRequest {
  method: "egress_resolve";
  name: string;
}
export interface EgressResolved {
  /** address: a connection to it may be requested. none: the name does not exist. failed: the lookup failed. */
  answer: "address" | "none" | "failed";
}

/** Queries a name's records of a type other than addresses. Answered with EgressRecords; older hosts answer unknown_method. */
export interface EgressRecordsRequest {
  method: "egress_records";
  name: string;
  type: DnsRecord["type"];
}
export interface EgressRecords {
  /** found: `records` may be used. none: the name does not exist. failed: the look-up failed. */
  answer: "found" | "none" | "failed";
  records: DnsRecord[];
}
/** Targets are names in lower case, without a trailing dot. */
export type DnsRecord =
  | { type: "SRV"; priority: number; weight: number; port: number; target: string }
  | { type: "MX"; preference: number; target: string }
  | { type: "TXT"; texts: string[] };

/**
 * Requests a connection of the host to a name or an address. ConnectOpened is sent once it is established; bytes on channel stdin, also
 * earlier ones, go out, and received bytes come on channel stdout. Each direction ends separately; ends with null after both.
 */
export interface EgressConnectRequest {
  method: "egress_connect";
  host: string;
  port: number;
}

/**
 * Calls the API of the guest's own room, as the sandbox's own agent: an HTTP request of which only the fields here are forwarded. Its body
 * comes on channel stdin; RoomCallAnswered is sent before the answer's body, which comes on channel stdout. Ends with null.
 */
export interface RoomCallRequest {
  method: "room_call";
  http_method: string;
  /** With its query. */
  path: string;
  /** By lower-case name, of ROOM_CALL_HEADERS. */
  headers: Record<string, string>;
}
/** Request headers that are forwarded. */
export const ROOM_CALL_HEADERS = [
  "accept",
  "content-length",
  "content-type",
  "idempotency-key",
  "if-match",
  "if-none-match",
  "last-event-id",
  "range",
  "traceparent",
  "x-request-id",
] as const;
export interface RoomCallAnswered {
  type: "answered";
  status: number;
  headers: Record<string, string>;
}

/** Requests of the agent to the host: streams that the guest opens. They have the channels stdin and stdout only. */
export type GuestRequest = EgressResolveRequest | EgressRecordsRequest | EgressConnectRequest | RoomCallRequest;

/** Channels of an exec stream; an attached terminal and a connection use the first two. */
export const Channel = { stdin: 0, stdout: 1, stderr: 2, output: 3 } as const;

/** Error codes of streams, as the agent reports them. */
export const StreamErrorCode = {
  unknown_method: "unknown_method",
  invalid_request: "invalid_request",
  cwd_not_found: "cwd_not_found",
  user_not_found: "user_not_found",
  too_many_streams: "too_many_streams",
  terminal_not_found: "terminal_not_found",
  terminal_in_use: "terminal_in_use",
  /** To the attached client: another one has taken its place. */
  taken_over: "taken_over",
  /** The port has no listener. */
  port_not_listening: "port_not_listening",
  /** The guest has no screen: SCREEN_SOCKET has no listener. */
  no_screen: "no_screen",
  /** From the host: it no longer needs this stream. */
  detached: "detached",
  /** The command needs the drive, but virtiofsd does not respond. */
  drive_unavailable: "drive_unavailable",
  too_many_executions: "too_many_executions",
  /** Another request had this exec_id. */
  exec_id_in_use: "exec_id_in_use",
  execution_not_found: "execution_not_found",
  /** The output, or the execution with this exec_id, is no longer stored. */
  history_gone: "history_gone",
  /** The command has ended, or has closed its standard input. */
  not_running: "not_running",
  /** A system call on a file failed; the message is the name of its errno. */
  file_failed: "file_failed",
  /** The file differs from the version that the request may replace. */
  file_changed: "file_changed",
  too_many_watches: "too_many_watches",
  /** Preceding bytes of standard input are missing. */
  stdin_gap: "stdin_gap",
  /** From the host: the sandbox may not connect to this destination. */
  egress_denied: "egress_denied",
  /** By the host: it is allowed, but the destination does not answer. */
  egress_unreachable: "egress_unreachable",
  /** From the host: the guest has too many connections, or opens them too fast. */
  too_many_connections: "too_many_connections",
  internal: "internal",
  /** Generated by the link itself when the connection ends under an open stream. */
  link_closed: "link_closed",
} as const;

export type StreamErrorCode = (typeof StreamErrorCode)[keyof typeof StreamErrorCode];

export interface StreamErrorBody {
  code: string;
  message: string;
}
