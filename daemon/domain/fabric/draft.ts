/** A message before it is stored: its fields validated and bounded, and its fingerprint. Pure. */
import { hash } from "node:crypto";
import { MAX_HEADER_BYTES, MAX_PAYLOAD_BYTES, type MessageKind } from "../../../shared/api/fabric.ts";
import { newId } from "../../../shared/ids.ts";
import { readTraceparent, TRACEPARENT } from "../../../shared/traceparent.ts";
import type { CallEffects } from "../../core/call/call-effects.ts";
import type { RuleBreak } from "../../core/call/operation.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Address } from "./address.ts";

/** Far fewer than would overflow the stack when the payload is serialized again for a reader. */
const MAX_LEVELS = 512;

/** The fields common to sending and replying. */
export interface Content {
  payload?: unknown;
  payload_b64?: string | undefined;
  message_id?: string | undefined;
  headers?: Record<string, string> | undefined;
  ack_required?: boolean | undefined;
  ttl_ms?: number | undefined;
}

export interface Draft extends Address {
  source: string;
  kind: MessageKind;
  reply_to: string | null;
  message_id: string | null;
  payload: string | null;
  payload_b64: string | null;
  payload_sha256: string;
  size_bytes: number;
  headers: Record<string, string>;
  ack_required: boolean;
  ttl_ms: number | null;
}

/** Returns the violations that the schema does not find. */
export function contentRules(content: Content): RuleBreak[] {
  const bad: RuleBreak[] = [];
  if (content.payload !== undefined && content.payload_b64 !== undefined) {
    const message = "Send either payload or payload_b64, not both.";
    bad.push({ field: "payload_b64", code: "conflicting_fields", message });
  }
  if (content.payload_b64 !== undefined && !isBase64(content.payload_b64)) {
    bad.push({ field: "payload_b64", code: "base64", message: "payload_b64 is not base64." });
  }
  if (isDeeper(content.payload, MAX_LEVELS)) {
    bad.push({ field: "payload", code: "too_deep", message: `payload may have ${MAX_LEVELS} levels.` });
  }
  // A trace header that the service may have added does not count against a client that forwards the message.
  const { [TRACEPARENT]: place, ...own } = content.headers ?? {};
  const headers = readTraceparent(place) ? own : (content.headers ?? {});
  const headerBytes = Buffer.byteLength(JSON.stringify(headers));
  if (headerBytes > MAX_HEADER_BYTES) {
    bad.push({ field: "headers", code: "length", message: `headers may have ${MAX_HEADER_BYTES} bytes in all.` });
  }
  return bad;
}

/** Derives the message id of a call with an Idempotency-Key from the call's ulid, so that a retry does not store the message twice. */
export function namedBy<T extends Content>({ ulid }: Pick<CallEffects, "ulid">, content: T): T {
  if (content.message_id !== undefined || ulid === undefined) return content;
  return { ...content, message_id: newId("msg", ulid) };
}

/** Throws payload_too_large. */
export function makeDraft(content: Content, rest: Address & Pick<Draft, "source" | "kind" | "reply_to">): Draft {
  const { payload_b64 = null } = content;
  const payload = payload_b64 === null ? JSON.stringify(content.payload ?? null) : null;
  const size_bytes =
    payload_b64 === null ? Buffer.byteLength(payload ?? "") : Buffer.from(payload_b64, "base64").length;
  if (size_bytes > MAX_PAYLOAD_BYTES) {
    throw new ServiceError("payload_too_large", {
      detail: `The payload has ${size_bytes} bytes; the limit is ${MAX_PAYLOAD_BYTES}.`,
      details: { size_bytes, max_bytes: MAX_PAYLOAD_BYTES },
      hint: "Write it to the drive and send its path.",
    });
  }
  return {
    ...rest,
    message_id: content.message_id ?? null,
    payload,
    payload_b64,
    payload_sha256: sha256(payload ?? payload_b64 ?? ""),
    size_bytes,
    headers: content.headers ?? {},
    ack_required: content.ack_required ?? false,
    ttl_ms: content.ttl_ms ?? null,
  };
}

/** Two drafts with the same fingerprint request the same message; a draft without a message_id from its sender has none. */
export function fingerprintOf(draft: Draft): string {
  const { payload: _, payload_b64: bytes, message_id, ...rest } = draft;
  if (message_id === null) return "";
  return sha256(JSON.stringify([bytes === null, Object.entries(rest).sort(([a], [b]) => (a < b ? -1 : 1))]));
}

function isDeeper(value: unknown, levels: number): boolean {
  const inside = (values: readonly unknown[]) =>
    values.flatMap((each) => (typeof each === "object" && each !== null ? Object.values(each) : []));
  let level: readonly unknown[] = [value];
  for (let left = levels; level.length > 0; left--) {
    if (left === 0) return true;
    level = inside(level);
  }
  return false;
}

function isBase64(text: string): boolean {
  return /^[A-Za-z0-9+/]*={0,2}$/.test(text) && text.length % 4 === 0;
}

function sha256(text: string): string {
  return hash("sha256", text);
}
