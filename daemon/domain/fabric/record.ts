/** Messages and their delivery in the format of the API. */
import { DELIVERY_STATES, type DeliveryState, type MessageRecord } from "../../../shared/api/fabric.ts";
import type { Queries } from "../../db/client.ts";
import { deliveriesOf } from "./store.ts";
import type { MessageRow } from "./table.ts";

/** `attempt`: number of times that the message was handed out, in an inbox. */
export function toMessage(row: MessageRow, attempt: number | null = null): MessageRecord {
  return {
    ...withoutPayload(row, attempt),
    payload: row.payload === null ? null : (JSON.parse(row.payload) as unknown),
  };
}

/**
 * The same as JSON. The payload is the sender's JSON text, inserted as it is: parsing and serializing it again may take a hundred times as
 * long.
 */
export function messageJson(row: MessageRow, attempt: number | null): string {
  return `${JSON.stringify(withoutPayload(row, attempt)).slice(0, -1)},"payload":${row.payload}}`;
}

function withoutPayload(row: MessageRow, attempt: number | null): Omit<MessageRecord, "payload"> {
  const { message_id, seq, source, destination, destinations, topic, kind, payload_b64, size_bytes } = row;
  return {
    message_id,
    seq,
    source,
    destination,
    destinations,
    topic,
    kind,
    payload_b64,
    size_bytes,
    headers: row.headers,
    reply_to: row.reply_to,
    ack_required: row.ack_required,
    created_at: row.created_at,
    expires_at: row.expires_at,
    attempt,
  };
}

/** Receipt of a message that was stored by this call or already existed. */
export function receiptOf(queries: Queries, row: MessageRow, isNew: boolean) {
  const { recipients, seq } = row;
  const deliveries: { agent_id: string; state: DeliveryState }[] = isNew
    ? recipients.map((agent_id) => ({ agent_id, state: "queued" }))
    : deliveriesOf(queries, row).map(({ agent_id, state }) => ({ agent_id, state: state ?? "expired" }));
  return {
    message_id: row.message_id,
    seq,
    state: furthestBehind(deliveries.map(({ state }) => state)),
    deliveries,
    recipient_count: recipients.length,
  };
}

/** A message without recipients counts as read. */
function furthestBehind(states: readonly DeliveryState[]): DeliveryState {
  const failed = (["undeliverable", "expired"] as const).find((state) => states.includes(state));
  const open = (["queued", "delivered"] as const).find((state) => states.includes(state));
  return open ?? failed ?? DELIVERY_STATES.find((state) => states.includes(state)) ?? "read";
}
