/** Names of the bells that wake those who wait in a room. */

export const inboxBell = (agentId: string) => `inbox ${agentId}`;
export const replyBell = (messageId: string) => `reply ${messageId}`;
export const ROOM_BELL = "room";
