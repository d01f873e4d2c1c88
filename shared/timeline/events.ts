/**
 * Audit events that a timeline shows, and their texts. Every event of a room is here or in LEFT_OUT, once; a test checks both against the
 * list of operations.
 */

import { commandText } from "../shell.ts";
import type { Lane, TimelineType } from "./item.ts";
import { DESTROYED, STANDBY } from "./words.ts";

/** Details of a record: they differ by event, and no field is guaranteed. */
export type Facts = Readonly<Record<string, unknown>>;

interface EventText {
  /** Null: shown only if the call waited. */
  type: TimelineType | null;
  /** The agent's if absent. */
  lane?: Lane;
  /** Whether the event has a duration; otherwise it is a moment. */
  span?: true;
  say(facts: Facts): string;
  /** Text for a call that waited: its details have `wait_ms`. Its type is wait then. */
  waits?(facts: Facts): string;
  ref?(facts: Facts): { type: string; id: string } | null;
}

const text = (value: unknown, otherwise = ""): string =>
  typeof value === "string" || typeof value === "number" ? String(value) : otherwise;
const words = (value: unknown): string[] => (Array.isArray(value) ? value.map((each) => text(each)) : []);
const named = (type: string, field: string) => (facts: Facts) => {
  const id = text(facts[field]);
  return id === "" ? null : { type, id };
};

const command = ({ argv, told_argv, command: script, exec_id }: Facts): string =>
  text(script) || commandText(words(argv ?? told_argv)) || `command ${text(exec_id)}`;
const receivers = ({ destination, destinations, topic }: Facts): string => {
  if (topic !== undefined) return `topic ${text(topic)}`;
  return destination === "*" ? "everybody" : text(destination) || words(destinations).join(", ");
};
const bytes = ({ size_bytes }: Facts): string => (typeof size_bytes === "number" ? ` (${size_bytes} bytes)` : "");
const port = (verb: string) => ({
  type: "port" as const,
  lane: "ports" as const,
  say: (facts: Facts) => `${verb} port ${text(facts.port)}`,
  ref: named("port", "port"),
});
const ofCommand = (say: EventText["say"]) => ({ type: "command" as const, say, ref: named("execution", "exec_id") });
const ofTerminal = (say: EventText["say"]) => ({
  type: "terminal" as const,
  say,
  ref: named("terminal", "terminal_id"),
});
const ofMessage = (say: EventText["say"]) => ({ type: "message" as const, say, ref: named("message", "message_id") });
const ofBarrier = (say: EventText["say"]) => ({ type: "barrier" as const, say, ref: named("barrier", "barrier_id") });
const ofDrive = (verb: string): EventText => ({
  type: "drive",
  say: (facts) => `${verb} ${text(facts.path)}${bytes(facts)}`,
  ref: named("file", "path"),
});
/** An event about a file on the sandbox's own disk: the hub shows only files of the drive, so there is no link. */
const ofFile = (verb: string): EventText => ({
  type: "command",
  say: (facts) => `${verb} ${text(facts.path)} in the sandbox${bytes(facts)}`,
});
const ofSandbox = (sentence: string): EventText => ({ type: "sandbox", say: () => sentence });
// The outcome comes first: lines are truncated if there is little space.
const ofCheckpoint = (verb: string): EventText => ({
  type: "room",
  lane: "room",
  say: ({ checkpoint_id, sandboxes }) => {
    const count = typeof sandboxes === "number" ? `, with ${sandboxCount(sandboxes)}` : "";
    return `checkpoint ${verb}: ${text(checkpoint_id)}${count}`;
  },
  ref: named("checkpoint", "checkpoint_id"),
});
const ofSnapshot = (verb: string): EventText => ({
  type: "sandbox",
  say: ({ snapshot_id, parent }) => {
    const before = text(parent);
    return `snapshot ${verb}: ${text(snapshot_id)}${before && `, after ${before}`}`;
  },
  ref: named("snapshot", "snapshot_id"),
});
const sandboxCount = (count: number): string => `${count} sandbox${count === 1 ? "" : "es"}`;
/** Failed parts of a fork or a restore. */
const missing = ({ failed }: Facts): string =>
  typeof failed === "number" && failed > 0 ? `, ${sandboxCount(failed)} failed` : "";
/** Source of a new resource, or target of a rollback. */
const asOf = (id: unknown): string => (text(id) === "" ? "" : ` as of ${text(id)}`);
const ofDriveSpace = (sentence: string): EventText => ({ type: "drive", lane: "room", say: () => sentence });
const because = (sentence: string): EventText => ({
  type: "sandbox",
  say: ({ reason, message }) => [sentence, text(message) || text(reason)].filter(Boolean).join(": "),
});

export const EVENTS: Readonly<Record<string, EventText>> = {
  "exec.started": ofCommand((facts) => `started ${command(facts)}`),
  "exec.finished": { ...ofCommand(command), span: true },
  "exec.signal": ofCommand(({ signal, exec_id }) => `sent ${text(signal)} to ${text(exec_id)}`),
  "exec.killed": ofCommand(({ exec_id }) => `ended ${text(exec_id)}`),
  "exec.stdin": ofCommand(({ exec_id }) => `wrote to standard input of ${text(exec_id)}`),

  "exec.terminal_opened": ofTerminal(() => "opened a terminal"),
  "exec.terminal_attached": ofTerminal(() => "attached to a terminal"),
  "exec.terminal_detached": { ...ofTerminal(() => "at a terminal"), span: true },
  "exec.terminal_closed": ofTerminal(() => "closed a terminal"),
  "exec.terminal_token_made": ofTerminal(() => "made a ticket for a terminal"),
  "screen.used": {
    type: "terminal",
    say: ({ action }) => `at the screen: ${text(action, "an action").replaceAll("_", " ")}`,
  },
  "screen.ticket_made": {
    type: "terminal",
    say: ({ drives }) => (drives === true ? "made a ticket to drive the screen" : "made a ticket to see the screen"),
  },
  "screen.drive_begun": { type: "terminal", say: () => "began to drive the screen" },
  "screen.driven": { type: "terminal", span: true, say: () => "drove the screen" },
  "screen.recording_started": { type: "terminal", say: () => "began to record the screen" },
  "screen.recording_stopped": { type: "terminal", say: () => "stopped recording the screen" },
  "screen.recording_ended": {
    type: "terminal",
    span: true,
    say: ({ end_reason }) => `recorded the screen (${text(end_reason, "ended").replaceAll("_", " ")})`,
  },
  "screen.recording_deleted": { type: "terminal", say: () => "deleted a recording of the screen" },
  "ssh.access_created": { type: "terminal", say: () => "gave access by SSH" },
  "ssh.access_deleted": { type: "terminal", say: () => "withdrew access by SSH" },
  "ssh.login": { type: "terminal", say: () => "logged in by SSH" },
  "ssh.shell": { type: "terminal", say: () => "opened a shell by SSH" },
  "ssh.exec": { type: "terminal", say: ({ command: script }) => `by SSH: ${text(script)}` },
  "ssh.sftp": { type: "terminal", say: () => "began to copy files by SSH" },
  "ssh.forward": {
    type: "terminal",
    say: ({ host, port: number }) => `forwards ${text(host)}:${text(number)} by SSH`,
  },
  "ssh.session_closed": { type: "terminal", span: true, say: () => "SSH session" },

  "message.sent": {
    ...ofMessage((facts) => `${text(facts.kind, "message")} to ${receivers(facts)}`),
    waits: (facts) => `waited for a reply of ${receivers(facts)}`,
  },
  "message.read": {
    type: null,
    say: () => "read messages",
    waits: () => "waited for messages",
  },
  "message.replied": ofMessage(({ destination }) => `replied to ${text(destination) || "a request"}`),
  "message.acked": ofMessage(({ message_id }) => `acknowledged ${text(message_id)}`),
  "message.subscribed": ofMessage(({ topics }) => `subscribed to ${text(topics, "some")} topics`),

  "barrier.arrived": {
    ...ofBarrier(({ barrier_id }) => `arrived at barrier ${text(barrier_id)}`),
    waits: ({ barrier_id }) => `waited at barrier ${text(barrier_id)}`,
  },
  "barrier.cancelled": ofBarrier(({ barrier_id }) => `cancelled barrier ${text(barrier_id)}`),

  "egress.denied": {
    type: "refusal",
    lane: "egress",
    say: ({ host, ip, port: number, reason }) =>
      `no connection to ${text(host) || text(ip) || "somewhere"}${number ? `:${text(number)}` : ""} (${text(reason)})`,
  },
  "egress.changed": {
    type: "sandbox",
    lane: "egress",
    say: ({ after }) => `may now connect to ${words(after).slice(0, 8).join(", ") || "the destinations of its rules"}`,
  },

  "sandbox.created": {
    type: "sandbox",
    say: ({ snapshot_id }) => `sandbox created${asOf(snapshot_id)}`,
    ref: named("snapshot", "snapshot_id"),
  },
  "sandbox.updated": ofSandbox("sandbox changed"),
  "sandbox.destroyed": because(DESTROYED.sandbox),
  "sandbox.failed": because(DESTROYED.failed),
  "sandbox.drive_degraded": because("the drive does not answer in the sandbox"),
  "sandbox.drive_restored": ofSandbox("the drive answers in the sandbox again"),
  "sandbox.standby": { type: "standby", say: () => STANDBY.begun },
  "sandbox.hibernated": {
    type: "standby",
    say: ({ reason }) => (reason === "not_saved" ? "not saved before its host was shut down" : STANDBY.onDisk),
  },
  "sandbox.resume": { type: "standby", say: () => STANDBY.over },

  "sandbox.forked": {
    type: "sandbox",
    say: (facts) => {
      const agents = words(facts.agents);
      const into = agents.length > 0 ? agents.join(", ") : sandboxCount(Number(facts.forks ?? 0));
      return `forked${asOf(facts.snapshot_id)} into ${into}${missing(facts)}`;
    },
    ref: named("snapshot", "snapshot_id"),
  },
  "sandbox.rolled_back": {
    type: "sandbox",
    say: ({ snapshot_id, before }) => {
      const from = text(before);
      return `rolled back ${from && from !== snapshot_id ? `from ${from} ` : ""}to ${text(snapshot_id)}`;
    },
    ref: named("snapshot", "snapshot_id"),
  },
  "snapshot.created": ofSnapshot("taken"),
  "snapshot.deleted": ofSnapshot("deleted"),
  "snapshot.expired": ofSnapshot("expired"),

  "drive.written": ofDrive("wrote"),
  "drive.deleted": ofDrive("deleted"),
  "drive.directory_made": ofDrive("made directory"),
  "drive.moved": {
    type: "drive",
    say: ({ path, to }) => `moved ${text(path)} to ${text(to)}`,
    ref: named("file", "to"),
  },
  "file.written": ofFile("wrote"),
  "file.deleted": ofFile("deleted"),
  "file.directory_made": ofFile("made directory"),
  "file.moved": { type: "command", say: ({ path, to }) => `moved ${text(path)} to ${text(to)} in the sandbox` },
  "quota.drive_open": ofDriveSpace("the drive has space again"),
  "quota.drive_stopped": ofDriveSpace("the drive is full: guests that write are stopped"),
  "quota.drive_held": ofDriveSpace("the drive is over its limit: guests cannot use it"),

  "port.exposed": port("exposed"),
  "port.unexposed": port("closed"),
  "port.closed": port("closed"),
  "port.expired": port("expired:"),
  "port.refused": { ...port("no valid token for"), type: "refusal" },

  "checkpoint.created": ofCheckpoint("taken"),
  "checkpoint.deleted": ofCheckpoint("deleted"),
  "checkpoint.expired": ofCheckpoint("expired"),
  "room.forked": {
    type: "room",
    lane: "room",
    say: (facts) => `room ${text(facts.into)} forked from it${asOf(facts.checkpoint_id)}${missing(facts)}`,
    ref: named("room", "into"),
  },
  "room.restored": {
    type: "room",
    lane: "room",
    say: (facts) => `restored to ${text(facts.checkpoint_id)}${missing(facts)}`,
    ref: named("checkpoint", "checkpoint_id"),
  },
  "room.backed_up": {
    type: "room",
    lane: "room",
    say: ({ drive_bytes }) => `backed up to a file, with a drive of ${text(drive_bytes)} bytes`,
  },
  "room.moved": {
    type: "room",
    lane: "room",
    say: ({ to, away_ms }) => `move to ${text(to)}, unreachable for ${text(away_ms)} ms`,
  },
  "room.moved_out": { type: "room", lane: "room", say: ({ to }) => `moved to ${text(to)}` },
  "room.moved_in": { type: "room", lane: "room", say: ({ from }) => `came from ${text(from)}` },
  "room.updated": { type: "room", lane: "room", say: () => "room changed" },
  "room.created": {
    type: "room",
    lane: "room",
    say: ({ of_room, checkpoint_id }) => {
      const from = text(of_room);
      return from ? `room created from ${from}${asOf(checkpoint_id)}` : "room created";
    },
    ref: named("room", "of_room"),
  },
  "room.destroyed": { type: "room", lane: "room", say: () => DESTROYED.room },
  "quota.soft_exceeded": {
    type: "room",
    lane: "room",
    say: ({ limit }) => `over the soft limit of ${text(limit)}`,
  },
};

/** Records of a room that are not events of its timeline: reads, and the service's own book-keeping. */
export const LEFT_OUT: readonly string[] = [
  ...["room.read", "room.listed", "room.overview_read", "room.waits_read", "room.timeline_read", "room.followed"],
  ...["sandbox.read", "sandbox.listed", "sandbox.logs_read", "sandbox.measured", "sandbox.swept"],
  ...[
    "exec.read",
    "exec.terminal_read",
    "exec.terminal_listed",
    "exec.terminal_watched",
    "ssh.access_listed",
    "port.listed",
    "port.browser_read",
  ],
  ...[
    "message.agents_listed",
    "barrier.read",
    "barrier.listed",
    "egress.read",
    "egress.decision_read",
    "egress.network_read",
  ],
  "screen.read",
  "screen.watched",
  "screen.recordings_listed",
  "screen.recording_read",
  "screen.recording_state_read",
  "screen.film_read",
  ...["snapshot.listed", "snapshot.read", "checkpoint.listed", "checkpoint.read"],
  ...["drive.read", "drive.listed", "drive.stat_read"],
  ...["file.read", "file.listed", "file.stat_read", "file.watched"],
  ...["audit.listed", "audit.summarized", "audit.verified", "audit.followed", "audit.purged"],
  ...["usage.read", "usage.capped", "quota.rate_limited", "quota.credits_exhausted"],
];
