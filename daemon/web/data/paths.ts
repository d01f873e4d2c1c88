/** Owns the paths of rooms and agents as links within the hub write them; what has an id of its own is in shared/places.ts. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import { part } from "./api.ts";

const withTab = (path: string, tab: string) => (tab ? `${path}/${tab}` : path);

export const roomPath = (roomId: string, tab = ""): string => withTab(`/rooms/${part(roomId)}`, tab);

/** By what a room is found: another may have the name of one that has ended. */
export const addressOf = ({ state, room_id, room_uid }: Pick<RoomRecord, "state" | "room_id" | "room_uid">): string =>
  state === "destroyed" ? room_uid : room_id;

export const agentPath = (roomId: string, agentId: string, tab = ""): string =>
  withTab(`${roomPath(roomId)}/agents/${part(agentId)}`, tab);
