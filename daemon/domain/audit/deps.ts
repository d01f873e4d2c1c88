import type { AnchorStore } from "../../core/anchor-store.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { Notifier } from "../../core/concurrency/notifier.ts";
import type { Log } from "../../core/log.ts";
import type { Reads } from "../../db/readers/pool.ts";
import type { Database } from "../../db/transact.ts";
import type { OtherHosts } from "./chain/compare-named.ts";
import type { AuditedRoom } from "./find.ts";

export interface AuditDeps {
  database: Database;
  reads: Reads;
  log: Log;
  bells: Notifier;
  /** Store of this host's anchors; null: none, the host is standalone. */
  anchors: AnchorStore | null;
  /** Hosts whose chains are compared with the heads that records name; null: none, as above. */
  others: OtherHosts | null;
  /** Timeout after which a stream's reader that does not take sent data is disconnected. */
  slowReaderMs: number;
  findRoom(caller: Caller, roomId: string): AuditedRoom;
  /** Resolves `self` and throws org_not_found for any organization but the caller's. */
  findOrg(caller: Caller, orgId: string): string;
}
