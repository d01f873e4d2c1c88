/** Owns the paths of rooms and agents as links within the hub write them; what has an id of its own is in shared/places.ts. */
import { part } from "./api.ts";

const withTab = (path: string, tab: string) => (tab ? `${path}/${tab}` : path);

export const roomPath = (roomId: string, tab = ""): string => withTab(`/rooms/${part(roomId)}`, tab);

export const agentPath = (roomId: string, agentId: string, tab = ""): string =>
  withTab(`${roomPath(roomId)}/agents/${part(agentId)}`, tab);
