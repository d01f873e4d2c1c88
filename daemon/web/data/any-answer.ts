/** Requests a resource whose answer is valid with any status. Separate from the code that every page loads. */
import type { Operation, OutputOf } from "../../../shared/api/contract.ts";
import { once, Refused, UNREACHABLE } from "./api.ts";

/** The service's answer with any status, such as a health report. Throws Refused if the answer is not JSON, or if none exists. */
export async function getAny<Op extends Operation>(path: string, signal?: AbortSignal): Promise<OutputOf<Op>> {
  const response = await once(path, { Accept: "application/json" }, signal);
  const answer = await response.json().catch(() => null);
  signal?.throwIfAborted();
  if (answer === null) throw new Refused(UNREACHABLE);
  return answer as OutputOf<Op>;
}
