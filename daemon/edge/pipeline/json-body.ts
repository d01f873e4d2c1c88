/** A JSON body as an object of fields. */
import { ServiceError } from "../../core/service-error.ts";

/** Parses a body with checked complexity. Throws invalid_json, invalid_body. */
export function parseBody(bytes: Uint8Array): Record<string, unknown> {
  let value: unknown;
  try {
    value = JSON.parse(new TextDecoder("utf-8", { fatal: true }).decode(bytes));
  } catch (error) {
    const format = error instanceof SyntaxError ? "JSON" : "UTF-8 text";
    throw new ServiceError("invalid_json", { detail: `The body is not valid ${format}.` });
  }
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    throw new ServiceError("invalid_body", { detail: "The body must be a JSON object." });
  }
  return value as Record<string, unknown>;
}
