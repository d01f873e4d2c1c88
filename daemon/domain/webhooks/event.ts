/** Events for webhooks, made from audit records, and the filter by webhook. The same record always gives the same bytes. */
import type { AuditRecord } from "../../../shared/api/audit.ts";
import { EVERY_TYPE, type WebhookEvent } from "../../../shared/api/webhooks.ts";
import { isReadingEvent } from "../../../shared/audit-reads.ts";
import type { WebhookRow } from "./table.ts";

/** Limit that receivers accept for a body. */
const MAX_BYTES = 20_000;
const MAX_CHARACTERS = 256;
const MAX_ITEMS = 32;
/** Ids, and outcomes in a word or number. All other details are only in the audit. */
const THIN = /(^|_)ids?$|^(reason|state|exit_code|count|port)$/;

/** Reads are never sent: a receiver that looks up the subject of an event would receive its own look-up, in a loop. */
export function isWanted(
  { event, room_id }: Pick<AuditRecord, "event" | "room_id">,
  { types, room_ids }: Pick<WebhookRow, "types" | "room_ids">,
): boolean {
  if (isReadingEvent(event)) return false;
  if (room_ids !== null && (room_id === null || !room_ids.includes(room_id))) return false;
  return types.some((type) => type === EVERY_TYPE || event.startsWith(type));
}

export function eventOf(record: AuditRecord): WebhookEvent {
  const { event, at, actor, details } = record;
  return {
    type: event,
    timestamp: at,
    data: {
      event_id: record.audit_id,
      org_id: record.org_id ?? "",
      room_id: record.room_id,
      room_uid: record.room_uid,
      agent_id: record.agent_id,
      sandbox_id: record.sandbox_id,
      actor: { type: actor.type, id: actor.id },
      outcome: record.outcome,
      error_code: record.error_code,
      request_id: record.request_id,
      details: Object.fromEntries(Object.entries(details).filter(([name, value]) => THIN.test(name) && isSmall(value))),
    },
  };
}

/** The body that is signed and sent. */
export function bodyOf(event: WebhookEvent): string {
  const body = JSON.stringify(event);
  if (Buffer.byteLength(body) <= MAX_BYTES) return body;
  return JSON.stringify({ ...event, data: { ...event.data, details: {} } });
}

function isSmall(value: unknown): boolean {
  if (Array.isArray(value)) return value.length <= MAX_ITEMS && value.every((each) => isText(each));
  return value === null || typeof value === "number" || typeof value === "boolean" || isText(value);
}

const isText = (value: unknown): boolean => typeof value === "string" && value.length <= MAX_CHARACTERS;
