/** Counts the clients that follow events, and limits them. */
import type { OrgId } from "../../../shared/ids.ts";
import type { Caller } from "../../core/operation.ts";
import { ServiceError } from "../../core/service-error.ts";

const MOST_READERS = 1000;
/** So that no organization takes all places. */
const MOST_OF_ORG = 250;
interface Reader {
  org_id: OrgId;
}

export class Readers {
  readonly #all = new Set<Reader>();

  /** Takes a place until the signal ends it. Throws rate_limited. */
  add({ org_id }: Pick<Caller, "org_id">, signal: AbortSignal): void {
    const ofOrg = [...this.#all].filter((reader) => reader.org_id === org_id).length;
    if (this.#all.size >= MOST_READERS || ofOrg >= MOST_OF_ORG) {
      throw new ServiceError("rate_limited", {
        detail: `At most ${MOST_OF_ORG} clients of an organization can follow events, and ${MOST_READERS} in all.`,
        retryAfterSeconds: 5,
      });
    }
    const reader = { org_id };
    this.#all.add(reader);
    const leave = () => void this.#all.delete(reader);
    if (signal.aborted) leave();
    else signal.addEventListener("abort", leave, { once: true });
  }
}
