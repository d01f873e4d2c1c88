/** Requests that the service itself makes, in the OpenAPI document: the events for webhooks. */
import { webhookEvent } from "../../../shared/api/webhooks.ts";
import { exampleOf } from "./examples.ts";
import { answerSchema, type Json } from "./schemas.ts";

const HEADERS: readonly (readonly [name: string, description: string])[] = [
  ["webhook-id", "The event's id: the same however often it is sent."],
  ["webhook-timestamp", "When it was sent, in seconds since 1970."],
  [
    "webhook-signature",
    "v1, a comma and the base64 of HMAC-SHA256 over ID.TIMESTAMP.BODY by the webhook's secret; several with spaces between while a secret is being replaced.",
  ],
];

/** Of the document's `webhooks`, by name. */
export function postedEvents(): Json {
  const post = {
    operationId: "webhook_event",
    summary: "An event of the organization",
    description:
      "Posted to the URL of a webhook, as Standard Webhooks 1.0.0 says, at least once. Receivers ignore fields that they do not know.",
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
      "2XX": { description: "The receiver has the event. Every other answer has it sent again." },
      "410": { description: "The receiver wants no more events: the webhook is disabled." },
    },
  };
  return { event: { post } };
}
