/** The state of a room's messages in a checkpoint or backup file, and the validation of such a file from outside. */
import { Type } from "@sinclair/typebox";
import {
  DELIVERY_STATES,
  EVERYONE,
  MAX_DESTINATIONS,
  MAX_HEADER_BYTES,
  MAX_INBOX,
  MAX_PAYLOAD_BYTES,
  MAX_ROOM_AGENTS,
  MAX_TTL_MS,
  MESSAGE_KINDS,
  REDELIVERIES,
  TOPIC_PATTERN,
} from "../../../shared/api/fabric.ts";
import { AGENT_PATTERN, NAME_PATTERN } from "../../../shared/ids.ts";
import type { Steps } from "../../core/loop/index.ts";
import type { Origin, Rows } from "../../db/branch.ts";
import {
  accept,
  acceptRows,
  type Cells,
  CLOCKS_APART_MS,
  isCount,
  isFlag,
  isJson,
  isMomentBy,
  isOneOf,
  isText,
  jsonOf,
  type NamedCells,
  onlyOnce,
  orNull,
  UntrustedRows,
} from "../../db/untrusted-rows.ts";
import { bytesOf } from "./retention/budget.ts";
import { deliveries, messages } from "./table.ts";

/** The messages in a checkpoint. */
export interface FabricState {
  /** The last seq assigned; its message may have been removed. */
  last_seq: number;
  gone_seq: number;
  messages: Rows;
  deliveries: Rows;
}

/** Of all messages together, as they are held in memory during validation: in a complete file each recipient has a row of its own. */
const MAX_RECIPIENTS = 1_000_000;
/** So that no room exhausts its sequence numbers. */
const MAX_SEQ = 2 ** 50;

const agent = Type.String({ pattern: AGENT_PATTERN });
const isAgent = isText(new RegExp(AGENT_PATTERN));
const isName = isText(new RegExp(NAME_PATTERN));
const isTopic = isText(new RegExp(`^(?=.{1,256}$)${TOPIC_PATTERN.slice(1)}`));
const isSeq = isCount(1, MAX_SEQ);
const headers = Type.Record(Type.String({ pattern: "^[A-Za-z0-9_.-]{1,128}$" }), Type.String(), {
  additionalProperties: false,
  maxProperties: 32,
});

const messageBy = (latestMs: number): Cells => ({
  seq: isSeq,
  message_id: isName,
  source: isAgent,
  destination: orNull((cell) => cell === EVERYONE || isAgent(cell)),
  destinations: orNull(isJson(Type.Array(agent, { maxItems: MAX_DESTINATIONS }))),
  topic: orNull(isTopic),
  kind: isOneOf(MESSAGE_KINDS),
  payload: orNull((cell) => typeof cell === "string" && jsonOf(cell) !== undefined),
  payload_b64: orNull(isText(/^[A-Za-z0-9+/]*={0,2}$/)),
  size_bytes: isCount(0, MAX_PAYLOAD_BYTES),
  headers: (cell) => isJson(headers)(cell) && Buffer.byteLength(cell as string) <= 2 * MAX_HEADER_BYTES,
  reply_to: orNull(isName),
  ack_required: isFlag,
  recipients: isJson(Type.Array(agent, { maxItems: MAX_ROOM_AGENTS })),
  fingerprint: isText(/^([0-9a-f]{64})?$/),
  created_at: isMomentBy(latestMs),
  expires_at: orNull(isMomentBy(latestMs + MAX_TTL_MS)),
});

const deliveryBy = (latestMs: number): Cells => ({
  agent_id: isAgent,
  seq: isSeq,
  state: isOneOf(DELIVERY_STATES),
  attempts: isCount(0, REDELIVERIES + 1),
  ack_required: isFlag,
  due_at_ms: orNull(isCount(0, latestMs + MAX_TTL_MS)),
  expires_at_ms: orNull(isCount(0, latestMs + MAX_TTL_MS)),
  awaited: isFlag,
});

const numbers = Type.Integer({ minimum: 0, maximum: MAX_SEQ });
const state = Type.Object(
  { last_seq: numbers, gone_seq: numbers, messages: Type.Unknown(), deliveries: Type.Unknown() },
  { additionalProperties: false },
);

/** Returns the state with the bytes that its messages take of a budget. Throws Foreign. */
export async function acceptFabric(
  given: unknown,
  { takenAtMs }: Pick<Origin, "takenAtMs">,
): Promise<{ state: FabricState; bytes: number }> {
  const latestMs = takenAtMs + CLOCKS_APART_MS;
  const { last_seq, gone_seq, ...tables } = accept(state, given, "messages");
  if (gone_seq > last_seq) throw new UntrustedRows("it lists removed messages that were never sent");
  const [onceBySeq, onceById] = [onlyOnce("messages"), onlyOnce("messages")];
  /** Per message: recipients that had no delivery row so far. */
  const recipients = new Map<unknown, Set<unknown>>();
  let [bytes, left] = [0, MAX_RECIPIENTS];
  const kept = await acceptRows(messages, tables.messages, {
    cells: messageBy(latestMs),
    each: (message) => {
      onceBySeq(message.seq);
      onceById(message.message_id);
      if (Number(message.seq) > last_seq)
        throw new UntrustedRows("one of its messages has a sequence number that was not assigned");
      requireSize(message);
      const to = listIn(message.recipients) ?? [];
      left -= to.length;
      if (left < 0) throw new UntrustedRows("its messages have more recipients than the limit of a room file");
      const each = new Set(to);
      if (each.size < to.length) throw new UntrustedRows("one of its messages has a recipient twice");
      recipients.set(message.seq, each);
      bytes += bytesOf(sizedOf(message, to));
      return undefined;
    },
  });
  const open = new Map<unknown, number>();
  const acceptedDeliveries = await acceptRows(deliveries, tables.deliveries, {
    cells: deliveryBy(latestMs),
    each: (delivery) => {
      const { agent_id, seq } = delivery;
      if (!recipients.get(seq)?.delete(agent_id))
        throw new UntrustedRows("one of its messages was delivered twice, or to an agent that is not a recipient");
      requireDue(delivery);
      if (!isOpen(delivery)) return undefined;
      const held = (open.get(agent_id) ?? 0) + 1;
      if (held > MAX_INBOX) throw new UntrustedRows("one of its inboxes exceeds the limit");
      open.set(agent_id, held);
      return undefined;
    },
  });
  return { state: { last_seq, gone_seq, messages: kept, deliveries: acceptedDeliveries }, bytes };
}

const listIn = (cell: NamedCells[string] | undefined) => (jsonOf(cell ?? null) as string[] | undefined) ?? null;

function sizedOf(message: NamedCells, recipients: string[]): Parameters<typeof bytesOf>[0] {
  const [payload, payload_b64] = [message.payload as string | null, message.payload_b64 as string | null];
  const headers = jsonOf(message.headers ?? null) as Record<string, string>;
  const size_bytes = Number(message.size_bytes);
  return { payload, payload_b64, size_bytes, headers, destinations: listIn(message.destinations), recipients };
}

/** Bytes that messages which are in no table take of a budget. */
export function* bytesOfState({ messages: { columns, rows } }: Pick<FabricState, "messages">): Steps<number> {
  let bytes = 0;
  for (const row of rows) {
    const message: NamedCells = Object.fromEntries(columns.map((column, at) => [column, row[at] ?? null]));
    bytes += bytesOf(sizedOf(message, listIn(message.recipients) ?? []));
    yield;
  }
  return bytes;
}

const isOpen = ({ state: became }: NamedCells) => became === "queued" || became === "delivered";

/** A due time exists only for messages in an inbox: it is at the latest when the message expires, and earlier only if an ack is awaited. */
function requireDue(delivery: NamedCells): void {
  const { state: became, ack_required, due_at_ms: due, expires_at_ms: end } = delivery;
  if (due === null) return;
  const isAwaitingAck = became === "delivered" && ack_required === 1;
  const isOne = isOpen(delivery) && (end === null ? isAwaitingAck : Number(due) <= Number(end));
  if (!isOne) throw new UntrustedRows("one of its messages has an impossible due time");
}

/** A message's size is computed again from its row: a size that differs from its payload's would be returned to the budget. */
function requireSize({ payload, payload_b64, size_bytes }: NamedCells): void {
  const bytes = typeof payload_b64 === "string" ? Buffer.from(payload_b64, "base64") : null;
  const isOne = (payload === null) !== (payload_b64 === null);
  const size = bytes ? bytes.length : Buffer.byteLength(String(payload));
  const isCanonical = bytes === null || bytes.toString("base64") === payload_b64;
  if (!isOne || !isCanonical || size !== size_bytes) throw new UntrustedRows("one of its messages has a wrong size");
}
