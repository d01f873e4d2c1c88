/** Requests that the service itself makes, in the OpenAPI document: the events for webhooks. */
import { webhookEvent } from "../../../shared/api/webhooks.ts";
import { exampleOf } from "./examples.ts";
import { answerSchema, type Json } from "./schemas.ts";

const HEADERS: readonly (readonly [name: string, description: string])[] = [
  ["webhook-id", "The event's id: the same in each delivery."],
  ["webhook-timestamp", "Time of the delivery, in seconds since 1970."],
  [
    "webhook-signature",
    "v1, a comma and the base64 of HMAC-SHA256 over ID.TIMESTAMP.BODY with the webhook's secret; several, separated by spaces, while a secret is being replaced.",
  ],
];

/** The document's `webhooks`, by name. */
export function postedEvents(): Json {
  const post = {
    operationId: "webhook_event",
    summary: "An event of the organization",
    description:
      "Posted to the URL of a webhook at least once, following Standard Webhooks 1.0.0. Receivers must ignore unknown fields.",
    tags: ["webhook"],
    security: [],
    parameters: HEADERS.map(([name, description]) => ({
      ...{ name, in: "header", required: true, description },
      schema: { type: "string" },
    })),
    requestBody: {
      required: true,
      content: {
        "application/json": { schema: answerSchema(webhookEvent), example: exampleOf(webhookEvent, "event") },
      },
    },
    responses: {
      "2XX": { description: "The receiver accepted the event. After any other answer it is sent again." },
      "410": { description: "The receiver rejects further events: the webhook is disabled." },
    },
  };
  return { event: { post } };
}
