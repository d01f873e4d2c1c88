/** Owns asking for what is answered whatever its status. Apart from what every page loads. */
import type { Operation, OutputOf } from "../../../shared/api/contract.ts";
import { once, Refused, UNREACHABLE } from "./api.ts";

/** What the service answers whatever its status, as by what tells how it is. Throws Refused where something else answers, or nothing. */
export async function getAny<Op extends Operation>(path: string, signal?: AbortSignal): Promise<OutputOf<Op>> {
  const response = await once(path, { Accept: "application/json" }, signal);
  const answer = await response.json().catch(() => null);
  signal?.throwIfAborted();
  if (answer === null) throw new Refused(UNREACHABLE);
  return answer as OutputOf<Op>;
}
