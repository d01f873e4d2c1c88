/** What the overview of rooms needs of others. */
import type { RoomGlance } from "../../../shared/api/room-overview.ts";
import type { RoomState } from "../../../shared/api/rooms.ts";
import type { OrgId, RoomUid } from "../../../shared/ids.ts";
import type { Caller } from "../../core/operation.ts";
import type { FindRoom } from "../../core/room-target.ts";
import type { Queries } from "../../db/client.ts";
import type { Agents } from "../agents/index.ts";
import type { Sandboxes } from "../sandboxes/index.ts";

export interface OverviewRoom {
  room_id: string;
  room_uid: RoomUid;
  org_id: OrgId;
  state: RoomState;
  labels: Record<string, string>;
  drive_limit_bytes: number;
  drive_until_at: string | null;
  created_at: string;
  expires_at: string | null;
}

interface PageQuery {
  state?: RoomState | undefined;
  label?: string | undefined;
  limit?: number | undefined;
  cursor?: string | undefined;
}

export interface OverviewDeps {
  queries: Queries;
  findRoom: FindRoom;
  agents: Pick<Agents, "waits" | "all" | "isGone" | "sandboxes">;
  sandboxes: Pick<Sandboxes, "going">;
  rooms: {
    /** Throws invalid_cursor. */
    page(caller: Caller, query: PageQuery): { rows: OverviewRoom[]; next_cursor: string | null };
    driveUsed(room: OverviewRoom): Promise<number>;
  };
  /** Messages that a room took in the last minute. */
  messagesLately(roomUid: RoomUid): number;
  /** What each of an organization's rooms has cost by now. */
  costs(orgId: OrgId): (room: OverviewRoom) => RoomGlance["cost"];
}
