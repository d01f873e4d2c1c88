/** Owns the names of the bells that wake who waits in a room. */

export const inboxBell = (agentId: string) => `inbox ${agentId}`;
export const replyBell = (messageId: string) => `reply ${messageId}`;
export const ROOM_BELL = "room";
