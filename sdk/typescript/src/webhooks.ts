/** Owns what a receiver of webhooks does first: see that an event is of the service, as Standard Webhooks 1.0.0 says. */
import { createHmac, timingSafeEqual } from "node:crypto";
import { RoomdError } from "./errors.ts";
import type { WebhookEvent } from "./generated/schemas.ts";

/** The body was not signed with the secret, or is too old. */
export class WebhookError extends RoomdError {
  override name = "WebhookError";
}

const PREFIX = "whsec_";
const TOLERANCE_SECONDS = 300;

/**
 * The event of a request's body, byte by byte as it came. While a secret is being rotated both are good. Throws WebhookError. The same
 * `event_id` may come more than once.
 */
export function verifyWebhook(
  body: string | Uint8Array,
  headers: Headers | Record<string, string | string[] | undefined>,
  secret: string,
): WebhookEvent {
  const headerOf = (name: string) => {
    const value = headers instanceof Headers ? headers.get(name) : headers[name];
    if (typeof value !== "string" || value === "") throw new WebhookError(`The request has no header ${name}.`);
    return value;
  };
  const id = headerOf("webhook-id");
  const timestamp = headerOf("webhook-timestamp");
  const age = Math.abs(Date.now() / 1000 - Number(timestamp));
  if (!(age <= TOLERANCE_SECONDS)) throw new WebhookError("The request is too old, or this host's clock is wrong.");
  const key = Buffer.from(secret.startsWith(PREFIX) ? secret.slice(PREFIX.length) : secret, "base64");
  const signed = createHmac("sha256", key).update(`${id}.${timestamp}.`).update(body).digest();
  const isSigned = headerOf("webhook-signature")
    .split(" ")
    .filter((each) => each.startsWith("v1,"))
    .map((each) => Buffer.from(each.slice("v1,".length), "base64"))
    .some((each) => each.byteLength === signed.byteLength && timingSafeEqual(each, signed));
  if (!isSigned) throw new WebhookError("The request was not signed with this secret.");
  return JSON.parse(Buffer.from(body as Uint8Array).toString()) as WebhookEvent;
}
