/** For receivers of webhooks: verifies that an event comes from the service, by Standard Webhooks 1.0.0. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { RoomdError, UsageError } from "./errors.ts";
import type { WebhookEvent } from "./generated/schemas.ts";

/** The signature does not match the secret, or the request is too old. */
export class WebhookError extends RoomdError {
  override name = "WebhookError";
}

const PREFIX = "whsec_";
const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/;
/** A shorter key could be guessed, and an empty one is known to everyone. */
const LEAST_KEY_BYTES = 16;
const TOLERANCE_SECONDS = 300;

/**
 * Verifies a request and returns its event. `body` must be the received bytes, unchanged. During the rotation of a secret both secrets are
 * valid. The same `event_id` may arrive more than once. Throws WebhookError, or UsageError if the secret is malformed.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): WebhookEvent {
  const key = keyOf(secret);
  const given =
    headers instanceof Headers
      ? headers
      : new Map(Object.entries(headers).map(([name, value]) => [name.toLowerCase(), value]));
  const headerOf = (name: string) => {
    const value = given.get(name);
    if (typeof value !== "string" || value === "") throw new WebhookError(`The request has no header ${name}.`);
    return value;
  };
  const id = headerOf("webhook-id");
  const timestamp = headerOf("webhook-timestamp");
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= TOLERANCE_SECONDS)) throw new WebhookError("The request is too old, or this host's clock is wrong.");
  const signed = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  const isSigned = headerOf("webhook-signature")
    .split(" ")
    .filter((each) => each.startsWith("v1,"))
    .map((each) => Buffer.from(each.slice("v1,".length), "base64"))
    .some((each) => each.byteLength === signed.byteLength && timingSafeEqual(each, signed));
  if (!isSigned) throw new WebhookError("The request was not signed with this secret.");
  return JSON.parse(Buffer.from(body as Uint8Array).toString()) as WebhookEvent;
}

/** Throws if the secret is invalid; the message does not contain it. */
function keyOf(secret: string): Buffer {
  const text = secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret;
  const key = Buffer.from(BASE64.test(text) ? text : "", "base64");
  if (key.byteLength < LEAST_KEY_BYTES) throw new UsageError("Invalid webhook secret: expected whsec_ and base64.");
  return key;
}
