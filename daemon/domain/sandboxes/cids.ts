/** The assignment of free guest CIDs to new sandboxes. */
import { GUEST_CID_MAX, GUEST_CID_MIN } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { VsockTransport } from "../../host/guest-link/transports/transport.ts";
import { unheldCids } from "./store.ts";

/** In the middle of the range: callers mostly choose the lowest by hand. */
const FIRST = Math.floor((GUEST_CID_MIN + GUEST_CID_MAX) / 2);

/** Hands out CIDs in turn, so that two sandboxes that are created concurrently never get the same one. */
export class FreeCids {
  #last = FIRST;

  /** Throws insufficient_capacity if all are in use. */
  next(queries: Queries, transport: Pick<VsockTransport, "firstFree">): number {
    const cid = transport.firstFree(unheldCids(queries, this.#last));
    if (cid === null) {
      const detail = `All ${GUEST_CID_MAX - GUEST_CID_MIN + 1} guest CIDs of this host are in use.`;
      throw new ServiceError("insufficient_capacity", { detail, hint: "Destroy a sandbox that is not needed." });
    }
    this.#last = cid;
    return cid;
  }
}
