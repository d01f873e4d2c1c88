/** Paths of rooms and agents, for links within the hub; resources with an id are in shared/places.ts. */
import type { RoomRecord } from "../../../shared/api/rooms.ts";
import { part } from "./api.ts";

const withTab = (path: string, tab: string) => (tab ? `${path}/${tab}` : path);

export const roomPath = (roomId: string, tab = ""): string => withTab(`/rooms/${part(roomId)}`, tab);

/** Id in a room's address: another room may have the name of a destroyed one. */
export const addressOf = ({ state, room_id, room_uid }: Pick<RoomRecord, "state" | "room_id" | "room_uid">): string =>
  state === "destroyed" ? room_uid : room_id;

export const agentPath = (roomId: string, agentId: string, tab = ""): string =>
  withTab(`${roomPath(roomId)}/agents/${part(agentId)}`, tab);
