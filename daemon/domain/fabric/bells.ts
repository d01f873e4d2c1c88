/** Names of the bells that wake the waiting calls of a room. */

export const inboxBell = (agentId: string) => `inbox ${agentId}`;
export const replyBell = (messageId: string) => `reply ${messageId}`;
export const ROOM_BELL = "room";
