/** The assignment of free guest CIDs to new sandboxes. */
import { GUEST_CID_MAX, GUEST_CID_MIN, GUEST_CIDS } from "../../../shared/ids.ts";
import { ServiceError } from "../../core/service-error.ts";
import type { Queries } from "../../db/client.ts";
import type { VsockTransport } from "../../host/guest-link/transports/transport.ts";
import { heldCids, unheldCids } from "./store.ts";
import type { SandboxRow } from "./table.ts";

/** Middle of the range: callers that choose a CID mostly take the lowest. */
const FIRST = Math.floor((GUEST_CID_MIN + GUEST_CID_MAX) / 2);

/**
 * For a sandbox that released its CID: the same CID if it is free, else another. `transport` throws if this host lacks a requirement; the
 * start of the guest reports that. Throws insufficient_capacity if all are in use.
 */
export function cidAgain(
  transport: () => Pick<VsockTransport, "firstFree">,
  queries: Queries,
  { guest_cid }: Pick<SandboxRow, "guest_cid">,
): number {
  const isHeld = heldCids(queries).has(guest_cid);
  const cids = [...(isHeld ? [] : [guest_cid]), ...unheldCids(queries, guest_cid)];
  let free: number | null;
  try {
    free = transport().firstFree(cids);
  } catch {
    free = cids[0] ?? null;
  }
  if (free === null) throw noneFree();
  return free;
}

function noneFree(): ServiceError {
  const detail = `All ${GUEST_CIDS} guest CIDs of this host are in use.`;
  return new ServiceError("insufficient_capacity", {
    detail,
    hint: "Destroy or hibernate a sandbox that is not needed.",
  });
}

/**
 * Assigns CIDs (vsock addresses of guests) in ascending order with wrap-around, so that two concurrently created sandboxes never get the
 * same one.
 */
export class FreeCids {
  #last = FIRST;

  /** Throws insufficient_capacity if all are in use. */
  next(queries: Queries, transport: Pick<VsockTransport, "firstFree">): number {
    const cid = transport.firstFree(unheldCids(queries, this.#last));
    if (cid === null) throw noneFree();
    this.#last = cid;
    return cid;
  }
}
