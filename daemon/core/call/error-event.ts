/** Error report of a stream that has started: its last event. */
import { errorKind } from "../../../shared/api/errors.ts";
import { ServiceError } from "../service-error.ts";
import type { StreamEvent } from "./operation.ts";

/** Inner text never leaves. */
export function errorEvent(error: unknown): StreamEvent {
  const known = error instanceof ServiceError ? error : new ServiceError("internal");
  const { title, ...kind } = errorKind(known.code);
  const detail = known.options.detail ?? `${title}.`;
  return { id: null, data: { type: "error", code: known.code, detail, retryable: "retryable" in kind } };
}
