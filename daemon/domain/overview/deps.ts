/** Injected dependencies of the overview of rooms: the modules, settings and callbacks that it is given. */
import type { InputOf } from "../../../shared/api/contract.ts";
import type { RoomGlance } from "../../../shared/api/overview/room-overview.ts";
import type { RoomState, roomList } from "../../../shared/api/rooms.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Caller } from "../../core/call/operation.ts";
import type { FindRoom } from "../../core/call/room-target.ts";
import type { Queries } from "../../db/client.ts";
import type { Reads } from "../../db/readers/pool.ts";
import type { Agents } from "../agents/index.ts";
import type { Sandboxes } from "../sandboxes/index.ts";

export interface OverviewRoom {
  room_id: string;
  room_uid: RoomUid;
  org_id: OrgId;
  host_id: string;
  state: RoomState;
  labels: Record<string, string>;
  drive_limit_bytes: number;
  drive_until_at: string | null;
  created_at: string;
  expires_at: string | null;
}

export interface OverviewDeps {
  queries: Queries;
  reads: Reads;
  findRoom: FindRoom;
  agents: Pick<Agents, "waits" | "all" | "isGone" | "sandboxes">;
  sandboxes: Pick<Sandboxes, "going">;
  rooms: {
    /** Throws invalid_cursor. */
    page(caller: Caller, query: InputOf<typeof roomList>): { rows: OverviewRoom[]; next_cursor: string | null };
    /** The current row of a room; undefined once it has been removed. */
    current(roomUid: RoomUid): OverviewRoom | undefined;
    driveUsed(room: OverviewRoom): Promise<number>;
  };
  /** URL template of a trace viewer, with `{trace_id}` for the id; null: none. */
  trace_url: string | null;
  /** Number of messages stored in a room during the last minute. */
  messagesLately(roomUid: RoomUid): number;
  /** Returns a function for the current cost of each of an organization's rooms, for one call. */
  costs(orgId: OrgId): (room: OverviewRoom) => RoomGlance["cost"];
}
