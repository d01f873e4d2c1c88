/**
 * Owns the secrets of webhooks and what they sign, and the sealing of their URLs. A secret is made of the webhook's id, a number that grows with
 * each rotation, and a key that lies in the data directory, the same on all hosts: neither it nor its hash is in a database.
 */
import { createCipheriv, createDecipheriv, createHmac, hkdfSync, randomBytes } from "node:crypto";
import { keptKey } from "../../core/kept-file.ts";
import type { WebhookRow } from "./table.ts";

const PREFIX = "whsec_";
const CIPHER = "aes-256-gcm";
const KEY_BYTES = 32;
const NONCE_BYTES = 12;
const TAG_BYTES = 16;
const PURPOSE = "roomd webhook url";

export class WebhookSecrets {
  readonly #key: Buffer;
  readonly #sealing: Buffer;

  /** Reads the key, after making it where there is none. Throws when the file is not one that was written here. */
  constructor(file: string) {
    this.#key = keptKey(file);
    this.#sealing = Buffer.from(hkdfSync("sha256", this.#key, "", PURPOSE, KEY_BYTES));
  }

  /** As people keep it: whsec_ and 32 bytes in base64. */
  of({ webhook_id, secret_number }: Pick<WebhookRow, "webhook_id" | "secret_number">): string {
    return PREFIX + this.#bytesOf(webhook_id, secret_number).toString("base64");
  }

  /** The header webhook-signature: one of each secret that is good at the time, the newest first. */
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

  /** A URL as it is kept: for this webhook alone. */
  seal(webhookId: string, url: string): string {
    const nonce = randomBytes(NONCE_BYTES);
    const cipher = createCipheriv(CIPHER, this.#sealing, nonce).setAAD(Buffer.from(webhookId));
    const sealed = [cipher.update(url, "utf8"), cipher.final()];
    return Buffer.concat([nonce, cipher.getAuthTag(), ...sealed]).toString("base64");
  }

  /** Null: it was sealed by another key, or for another webhook. */
  urlOf({ webhook_id, sealed_url }: Pick<WebhookRow, "webhook_id" | "sealed_url">): string | null {
    const bytes = Buffer.from(sealed_url, "base64");
    const decipher = createDecipheriv(CIPHER, this.#sealing, bytes.subarray(0, NONCE_BYTES));
    decipher.setAAD(Buffer.from(webhook_id)).setAuthTag(bytes.subarray(NONCE_BYTES, NONCE_BYTES + TAG_BYTES));
    try {
      const opened = [decipher.update(bytes.subarray(NONCE_BYTES + TAG_BYTES)), decipher.final()];
      return Buffer.concat(opened).toString("utf8");
    } catch {
      return null;
    }
  }

  #bytesOf(webhookId: string, number: number): Buffer {
    return createHmac("sha256", this.#key).update(`${webhookId} ${number}`).digest();
  }
}
