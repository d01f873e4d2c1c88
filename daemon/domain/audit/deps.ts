import type { AnchorStore } from "../../core/anchor-store.ts";
import type { Bells } from "../../core/bells.ts";
import type { Log } from "../../core/log.ts";
import type { Caller } from "../../core/operation.ts";
import type { Reads } from "../../db/readers/pool.ts";
import type { Database } from "../../db/transact.ts";
import type { AuditedRoom } from "./find.ts";

export interface AuditDeps {
  database: Database;
  reads: Reads;
  log: Log;
  bells: Bells;
  /** Where this host's chains are anchored; null: nowhere, it is by itself. */
  anchors: AnchorStore | null;
  /** Who reads a stream and leaves what was sent untaken for so long is cut off. */
  slowReaderMs: number;
  findRoom(caller: Caller, roomId: string): AuditedRoom;
  /** Resolves `self` and throws org_not_found for any organization but the caller's. */
  findOrg(caller: Caller, orgId: string): string;
}
