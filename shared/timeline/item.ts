/**
 * Owns what a record of the audit is on a room's timeline: a span or a mark on a lane, or nothing, as what only reads. The API's pages of the
 * timeline, the command line and the web are made of it. Pure.
 *
 * The record of a call is of when the call began; that of what no call tells of is of when it was over.
 */
import type { AuditRecord } from "../api/audit.ts";

export type Lane = "agent" | "room" | "egress" | "ports";
export type ItemType =
  | "command"
  | "wait"
  | "standby"
  | "message"
  | "barrier"
  | "refusal"
  | "sandbox"
  | "terminal"
  | "drive"
  | "port"
  | "room";

export interface TimelineItem {
  /** Of its record; null: it goes on, and has none yet. */
  seq: number | null;
  lane: Lane;
  agent_id: string | null;
  kind: "span" | "mark";
  type: ItemType;
  at: string;
  /** Null: it goes on. Of a mark the moment itself. */
  until: string | null;
  outcome: AuditRecord["outcome"];
  /** One line. */
  title: string;
  /** Whom it went to, or whom it waits for. */
  to: string[];
  ref: { type: "execution" | "message" | "barrier" | "terminal" | "port" | "sandbox" | "path"; id: string } | null;
  exit_code: number | null;
}

/** A call that took longer has waited. */
const WAITED_MS = 100;
const MOST_TITLE = 200;

type Details = AuditRecord["details"];
type Part = Pick<TimelineItem, "type" | "title"> &
  Partial<Pick<TimelineItem, "lane" | "kind" | "to" | "ref" | "exit_code">>;

const text = (value: unknown): string => (value === null || value === undefined ? "" : String(value));
const names = (value: unknown): string[] => (Array.isArray(value) ? value.map(String) : value ? [String(value)] : []);
const wordsOf = (argv: unknown): string => (Array.isArray(argv) ? argv.map(String).join(" ") : "");
const commandOf = ({ command, argv, told_argv }: Details): string =>
  text(command) || wordsOf(argv) || wordsOf(told_argv) || "a command";
const refOf = (type: NonNullable<TimelineItem["ref"]>["type"], id: unknown): TimelineItem["ref"] =>
  id === null || id === undefined ? null : { type, id: String(id) };

function finished({ details, error_code }: AuditRecord): Part {
  const { exec_id, exit_code, signal, timed_out } = details;
  const how = timed_out ? "timed out" : signal ? `ended by ${signal}` : exit_code ? `exit ${exit_code}` : error_code;
  return {
    type: "command",
    kind: "span",
    title: `${how ? `${how}: ` : ""}${commandOf(details)}`,
    ref: refOf("execution", exec_id),
    exit_code: typeof exit_code === "number" ? exit_code : null,
  };
}

function sent({ details, duration_ms, error_code }: AuditRecord): Part {
  const { message_id, destination, destinations, topic, kind } = details;
  const to = names(destinations ?? destination);
  const ref = refOf("message", message_id);
  const whom = topic ? `topic ${topic}` : to.join(", ") || "nobody";
  if (error_code === "deadlock_detected")
    return { type: "refusal", title: `refused: waiting for ${whom} would never end`, to, ref };
  if ((duration_ms ?? 0) > WAITED_MS && kind === "request") {
    const how = error_code === "reply_timeout" ? "no reply from" : "waited for";
    return { type: "wait", kind: "span", title: `${how} ${whom}`, to, ref };
  }
  return { type: "message", title: `${text(kind) || "message"} to ${whom}`, to, ref };
}

function arrived({ details, duration_ms, error_code }: AuditRecord): Part {
  const { barrier_id, arrivals } = details;
  const ref = refOf("barrier", barrier_id);
  const others = names(arrivals).slice(1);
  if (error_code === "deadlock_detected")
    return { type: "refusal", title: `refused: waiting at ${barrier_id} would never end`, ref };
  const title = error_code === null ? `barrier ${barrier_id}` : `barrier ${barrier_id}: ${error_code}`;
  if ((duration_ms ?? 0) <= WAITED_MS) return { type: "barrier", title, ref, to: others };
  return { type: "wait", kind: "span", title, ref, to: others };
}

const say =
  (type: ItemType, title: (record: AuditRecord) => string, lane?: Lane) =>
  (record: AuditRecord): Part => ({
    type,
    title: title(record),
    ...(lane ? { lane } : {}),
  });

const ofTerminal =
  (title: string) =>
  ({ details }: AuditRecord): Part => ({ type: "terminal", title, ref: refOf("terminal", details.terminal_id) });

const ofDrive =
  (title: string) =>
  ({ details: { path, to } }: AuditRecord): Part => ({
    type: "drive",
    title: `${title} ${text(path)}${to ? ` to ${text(to)}` : ""}`,
    ref: refOf("path", to ?? path),
  });

const ofPort =
  (title: string) =>
  ({ details: { port } }: AuditRecord): Part => ({
    type: "port",
    lane: "ports",
    title: `port ${text(port)} ${title}`,
    ref: refOf("port", port),
  });

/** Each event that is on a timeline, once. All others only read, or are not of a room. */
const PARTS: Record<string, (record: AuditRecord) => Part> = {
  "exec.finished": finished,
  "exec.started": ({ details }) => ({
    type: "command",
    title: `began: ${commandOf(details)}`,
    ref: refOf("execution", details.exec_id),
  }),
  "exec.signal": ({ details }) => ({
    type: "command",
    title: `signal ${text(details.signal)}`,
    ref: refOf("execution", details.exec_id),
  }),
  "exec.killed": ({ details }) => ({ type: "command", title: "killed", ref: refOf("execution", details.exec_id) }),
  "exec.terminal_opened": ofTerminal("terminal opened"),
  "exec.terminal_attached": ofTerminal("somebody sat down at the terminal"),
  "exec.terminal_detached": ofTerminal("the terminal was left"),
  "exec.terminal_closed": ofTerminal("terminal ended"),
  "message.sent": sent,
  "message.replied": ({ details }) => ({
    type: "message",
    title: `reply to ${names(details.destination).join(", ") || text(details.reply_to)}`,
    to: names(details.destination),
    ref: refOf("message", details.message_id),
  }),
  "message.acked": ({ details }) => ({
    type: "message",
    title: "acknowledged",
    ref: refOf("message", details.message_id),
  }),
  "message.subscribed": say("message", () => "subscribed"),
  "barrier.arrived": arrived,
  "barrier.cancelled": ({ details }) => ({
    type: "barrier",
    lane: "room",
    title: `barrier ${text(details.barrier_id)} cancelled`,
    ref: refOf("barrier", details.barrier_id),
  }),
  "egress.denied": ({ details: { host, ip, port, reason, count } }) => ({
    type: "refusal",
    lane: "egress",
    title: `${text(host) || text(ip) || "somewhere"}${port ? `:${port}` : ""} refused: ${text(reason).replaceAll("_", " ")}${Number(count) > 1 ? `, ${count} times` : ""}`,
  }),
  "egress.changed": say("refusal", () => "allowlist changed", "egress"),
  "sandbox.created": say("sandbox", ({ outcome, error_code }) =>
    outcome === "success" ? "sandbox created" : `sandbox not created: ${error_code}`,
  ),
  "sandbox.destroyed": say("sandbox", () => "sandbox destroyed"),
  "sandbox.failed": say("sandbox", ({ details }) => `sandbox failed: ${text(details.cause ?? details.reason)}`),
  "sandbox.updated": say("sandbox", () => "sandbox changed"),
  "sandbox.standby": say("standby", () => "paused"),
  "sandbox.resume": say("standby", () => "resumed"),
  "sandbox.drive_degraded": say("drive", () => "drive degraded"),
  "sandbox.drive_restored": say("drive", () => "drive back"),
  "port.exposed": ofPort("exposed"),
  "port.unexposed": ofPort("closed"),
  "port.expired": ofPort("expired"),
  "port.closed": ofPort("closed with its sandbox"),
  "port.refused": ofPort("refused"),
  "drive.written": ofDrive("wrote"),
  "drive.directory_made": ofDrive("made"),
  "drive.moved": ofDrive("moved"),
  "drive.deleted": ofDrive("deleted"),
  "ssh.login": say("terminal", () => "logged in by SSH"),
  "ssh.shell": say("terminal", () => "a shell by SSH"),
  "ssh.exec": say("terminal", () => "a command by SSH"),
  "ssh.session_closed": say("terminal", () => "SSH session closed"),
  "room.created": say("room", () => "room created", "room"),
  "room.destroyed": say("room", () => "room destroyed", "room"),
};

/** Events that a timeline has; it is asked for these alone. */
export const TIMELINE_EVENTS: readonly string[] = Object.keys(PARTS);

export function toItem(record: AuditRecord): TimelineItem | null {
  const part = Object.hasOwn(PARTS, record.event) ? PARTS[record.event]?.(record) : undefined;
  if (!part || record.source === "web") return null;
  const at = Date.parse(record.at);
  const took = record.duration_ms ?? 0;
  const isSpan = part.kind === "span";
  // What no call tells of has no status, and is of its end.
  const [from, until] = !isSpan ? [at, at] : record.status === null ? [at - took, at] : [at, at + took];
  return {
    seq: record.seq,
    lane: part.lane ?? (record.agent_id === null ? "room" : "agent"),
    agent_id: record.agent_id,
    kind: part.kind ?? "mark",
    type: record.outcome === "denied" ? "refusal" : part.type,
    at: new Date(from).toISOString(),
    until: new Date(until).toISOString(),
    outcome: record.outcome,
    title: part.title.replaceAll(/\s+/g, " ").slice(0, MOST_TITLE),
    to: part.to ?? [],
    ref: part.ref ?? null,
    exit_code: part.exit_code ?? null,
  };
}

/** Whether something went wrong, as far as a record says. */
export const isBad = ({ outcome, type, exit_code }: TimelineItem): boolean =>
  outcome !== "success" || type === "refusal" || (exit_code !== null && exit_code !== 0);

/**
 * The marks of a pause and of going on, as one span. Items in the order of their moments; a pause that has not ended goes on. Items that
 * are no such mark stay as they are.
 */
export function joinPauses(items: readonly TimelineItem[]): TimelineItem[] {
  const joined: TimelineItem[] = [];
  const paused = new Map<string, number>();
  for (const item of items) {
    const key = item.agent_id ?? "";
    if (item.type !== "standby" || item.kind !== "mark" || item.outcome !== "success") {
      if (item.type === "sandbox") paused.delete(key);
      joined.push(item);
    } else if (item.title === "paused") {
      paused.set(key, joined.push({ ...item, kind: "span", until: null }) - 1);
    } else {
      const begun = paused.get(key);
      paused.delete(key);
      if (begun === undefined) joined.push(item);
      else joined[begun] = { ...(joined[begun] as TimelineItem), until: item.at };
    }
  }
  return joined;
}
