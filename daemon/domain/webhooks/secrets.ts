/**
 * Webhook secrets, signatures, and the sealing of URLs. A secret is derived from the webhook's id, a number that grows with each rotation,
 * and a key in the data directory, the same on all hosts: neither the secret nor its hash is in a database.
 */
import { createHmac } from "node:crypto";
import { durableKey } from "../../core/config/durable-file.ts";
import { openText, sealingKey, sealText } from "../../core/config/sealed-text.ts";
import type { WebhookRow } from "./table.ts";

const PREFIX = "whsec_";
const PURPOSE = "roomd webhook url";

export class WebhookSecrets {
  readonly #key: Buffer;
  readonly #sealing: Buffer;

  /** Reads the key; creates it if absent. Throws if the file was not written by this code. */
  constructor(file: string) {
    this.#key = durableKey(file);
    this.#sealing = sealingKey(this.#key, PURPOSE);
  }

  /** The secret in its external form: whsec_ and 32 bytes in base64. */
  of({ webhook_id, secret_number }: Pick<WebhookRow, "webhook_id" | "secret_number">): string {
    return PREFIX + this.#bytesOf(webhook_id, secret_number).toString("base64");
  }

  /** The header webhook-signature: one signature per secret that is valid at the time, the newest first. */
  sign(
    { webhook_id, secret_number, former_until }: Pick<WebhookRow, "webhook_id" | "secret_number" | "former_until">,
    { id, timestamp, body }: { id: string; timestamp: number; body: string },
  ): string {
    const isFormerGood = former_until !== null && Date.parse(former_until) > timestamp * 1000;
    const numbers = isFormerGood ? [secret_number, secret_number - 1] : [secret_number];
    return numbers
      .map((number) => {
        const signed = createHmac("sha256", this.#bytesOf(webhook_id, number)).update(`${id}.${timestamp}.${body}`);
        return `v1,${signed.digest("base64")}`;
      })
      .join(" ");
  }

  /** A URL encrypted for storage, for this webhook only. */
  seal(webhookId: string, url: string): string {
    return sealText(this.#sealing, url, webhookId);
  }

  /** Null if it was sealed with another key, or for another webhook. */
  urlOf({ webhook_id, sealed_url }: Pick<WebhookRow, "webhook_id" | "sealed_url">): string | null {
    try {
      return openText(this.#sealing, sealed_url, webhook_id);
    } catch {
      return null;
    }
  }

  #bytesOf(webhookId: string, number: number): Buffer {
    return createHmac("sha256", this.#key).update(`${webhookId} ${number}`).digest();
  }
}
