import type { OrgId, RoomUid, SandboxId } from "../../../shared/ids.ts";
import type { Log } from "../../core/log.ts";
import type { Queries } from "../../db/client.ts";
import type { Database } from "../../db/transact.ts";
import type { Consumer, Meter } from "../orgs/index.ts";
import type { Denial } from "./denials.ts";

/** The sandbox to which traffic belongs. */
export interface EgressSandbox {
  sandbox_id: SandboxId;
  org_id: OrgId;
  room_uid: RoomUid;
  room_id: string;
  agent_id: string;
  created_at: string;
  /** The place to which its usage is charged. */
  place: Consumer;
}

export interface EgressDeps {
  database: Database;
  log: Log;
  meter: Pick<Meter, "count">;
  /** Within a transaction: whether the sandbox still has a row, whatever its state. */
  isKept(queries: Queries, sandboxId: SandboxId): boolean;
  /** Comma-separated ranges. */
  privateRanges: string;
  hostsFile: string;
  mibPerSecond: number;
  onDenied(sandbox: EgressSandbox, details: Denial & { count: number }): void;
}
