/** Events that the SDK accepts as the service's, against an independent signer. */
import { createHmac } from "node:crypto";
import { Webhook } from "standardwebhooks";
import { describe, expect, test } from "vitest";
import { UsageError, verifyWebhook, WebhookError } from "../../../sdk/typescript/src/index.ts";

const SECRET = `whsec_${Buffer.alloc(32, 7).toString("base64")}`;
const OTHER = `whsec_${Buffer.alloc(32, 8).toString("base64")}`;
const BODY = JSON.stringify({ type: "room.created", timestamp: "2026-01-31T12:00:00.000Z", data: { text: "ü" } });

function sent(secret: string, at = new Date()): Record<string, string> {
  return {
    "webhook-id": "evt_1",
    "webhook-timestamp": String(Math.floor(at.getTime() / 1000)),
    "webhook-signature": new Webhook(secret).sign("evt_1", at, BODY),
  };
}

describe("an event", () => {
  test("that is signed is returned, with any kind of headers", () => {
    expect(verifyWebhook(BODY, sent(SECRET), SECRET).type).toBe("room.created");
    expect(verifyWebhook(Buffer.from(BODY), new Headers(sent(SECRET)), SECRET).type).toBe("room.created");
  });

  test("may have header names in any case", () => {
    const headers = Object.fromEntries(
      Object.entries(sent(SECRET)).map(([name, value]) => [name.replace("webhook", "Webhook"), value]),
    );
    expect(verifyWebhook(BODY, headers, SECRET).type).toBe("room.created");
  });

  test.each([
    ["an empty text", ""],
    ["a secret's beginning alone", "whsec_"],
    ["no base64", "whsec_!!!"],
    ["base64 and more", `${SECRET}!`],
    ["too short", `whsec_${Buffer.alloc(15).toString("base64")}`],
  ])("is never valid with an invalid secret: %s", (_, secret) => {
    const headers = sent(SECRET);
    const key = Buffer.from(secret.replace("whsec_", ""), "base64");
    const text = `${headers["webhook-id"]}.${headers["webhook-timestamp"]}.${BODY}`;
    headers["webhook-signature"] = `v1,${createHmac("sha256", key).update(text).digest("base64")}`;
    expect(() => verifyWebhook(BODY, headers, secret)).toThrow(UsageError);
  });

  test("that is signed twice, while the secret is rotated, is valid with either", () => {
    const headers = sent(SECRET);
    headers["webhook-signature"] = `${sent(OTHER)["webhook-signature"]} ${headers["webhook-signature"]} v2,x`;
    expect(verifyWebhook(BODY, headers, SECRET).type).toBe("room.created");
    expect(verifyWebhook(BODY, headers, OTHER).type).toBe("room.created");
  });

  test.each([
    ["signed with another secret", BODY, sent(OTHER)],
    ["changed", BODY.replace("room", "Room"), sent(SECRET)],
    ["of another id", BODY, { ...sent(SECRET), "webhook-id": "evt_2" }],
    ["old", BODY, sent(SECRET, new Date(Date.now() - 301_000))],
    ["of no time", BODY, { ...sent(SECRET), "webhook-timestamp": "soon" }],
    ["without a signature", BODY, { ...sent(SECRET), "webhook-signature": "" }],
    ["with half a signature", BODY, { ...sent(SECRET), "webhook-signature": "v1,AAAA" }],
  ])("that is %s is rejected", (_, body, headers) => {
    expect(() => verifyWebhook(body, headers, SECRET)).toThrow(WebhookError);
  });
});
