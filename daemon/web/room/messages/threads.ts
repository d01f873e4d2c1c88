/** Groups messages into threads: a reply joins the message that it answers, recursively. Pure. */
import type { MessageRecord } from "../../../../shared/api/fabric.ts";

export interface Thread {
  /** Its first known message. */
  first: MessageRecord;
  /** All messages of the thread, in the room's order. */
  messages: MessageRecord[];
  /** A request without a reply. */
  isOpen: boolean;
}

/** By latest message, the newest first. A reply to an unknown message starts a new thread. */
export function threadsOf(messages: readonly MessageRecord[]): Thread[] {
  const known = new Map(messages.map((message) => [message.message_id, message]));
  const firstOf = new Map<string, MessageRecord>();
  for (const message of messages) {
    const way: MessageRecord[] = [];
    let at: MessageRecord = message;
    // Senders choose the ids: they may form a cycle.
    const passed = new Set<string>();
    while (!firstOf.has(at.message_id) && !passed.has(at.message_id)) {
      passed.add(at.message_id);
      way.push(at);
      const before = at.reply_to === null ? undefined : known.get(at.reply_to);
      if (!before) break;
      at = before;
    }
    const first = firstOf.get(at.message_id) ?? at;
    for (const each of way) firstOf.set(each.message_id, first);
  }
  const threads = new Map<string, Thread>();
  for (const message of messages) {
    const first = firstOf.get(message.message_id) ?? message;
    const thread = threads.get(first.message_id) ?? { first, messages: [], isOpen: false };
    thread.messages.push(message);
    threads.set(first.message_id, thread);
  }
  const all = [...threads.values()];
  for (const thread of all) {
    thread.messages.sort((one, other) => one.seq - other.seq);
    thread.isOpen = isUnanswered(thread.messages);
  }
  const last = ({ messages: own }: Thread) => own.at(-1)?.seq ?? 0;
  return all.sort((one, other) => last(other) - last(one));
}

function isUnanswered(messages: readonly MessageRecord[]): boolean {
  const answered = new Set(messages.map(({ reply_to }) => reply_to));
  return messages.some(
    ({ kind, message_id, expires_at }) => kind === "request" && expires_at === null && !answered.has(message_id),
  );
}

export function whomOf({ topic, destination, destinations }: MessageRecord): string {
  if (topic !== null) return `topic ${topic}`;
  if (destinations) return destinations.join(", ");
  return destination === "*" ? "everyone" : (destination ?? "nobody");
}

/** A message's contents on one line. */
export function lineOf({ payload, payload_b64, size_bytes }: MessageRecord): string {
  if (payload_b64 !== null) return `${size_bytes} bytes`;
  return typeof payload === "string" ? payload : (JSON.stringify(payload) ?? "");
}

/** Hex dump of the first bytes. */
export function dumpOf(base64: string, most = 1024): string {
  const bytes = Uint8Array.from(atob(base64.slice(0, Math.ceil(most / 3) * 4)), (each) => each.charCodeAt(0)).slice(
    0,
    most,
  );
  const lines: string[] = [];
  for (let at = 0; at < bytes.length; at += 16) {
    const row = [...bytes.slice(at, at + 16)];
    const hex = row.map((byte) => byte.toString(16).padStart(2, "0")).join(" ");
    const text = row.map((byte) => (byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : ".")).join("");
    lines.push(`${at.toString(16).padStart(4, "0")}  ${hex.padEnd(47)}  ${text}`);
  }
  return lines.join("\n");
}
