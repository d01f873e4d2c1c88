/** Owns what is still told of a room's sandboxes that have ended, when the room goes to another host: their rows. */
import type { RoomUid } from "../../../../shared/ids.ts";
import { putRows, type Rows, takeRows, valuesIn } from "../../../db/branch.ts";
import type { Queries } from "../../../db/client.ts";
import { sandboxes } from "../table.ts";

/** Within a transaction, once all have ended. */
export function takeEnded(queries: Queries, roomUid: RoomUid): Rows {
  const rows = takeRows(queries, sandboxes, roomUid);
  const states = valuesIn(rows, "state");
  return { ...rows, rows: rows.rows.filter((_, at) => states[at] === "destroyed") };
}

/** Those that were here before are known. Their guest_cids are other guests' here. */
export function putEnded(queries: Queries, roomUid: RoomUid, ended: Rows): void {
  const known = new Set(valuesIn(takeRows(queries, sandboxes, roomUid), "sandbox_id"));
  const [ids, states] = [valuesIn(ended, "sandbox_id"), valuesIn(ended, "state")];
  const rows = ended.rows.filter((_, at) => !known.has(ids[at] ?? null) && states[at] === "destroyed");
  putRows(queries, sandboxes, roomUid, { ...ended, rows }, { cid_held: () => 0 });
}
