/** Addresses at which programs in the guest reach their room. */

/** Host name of the gateway, which /etc/hosts resolves. */
export const ROOM_NAME = "room.internal";
/** A separate loopback address: port 80 of the others stays free for the guest's own servers. */
export const ROOM_ADDRESS = "127.0.0.80";
export const ROOM_PORT = 80;
/** The agent accepts the connections on it; a rule of the network redirects them to it. */
export const GATEWAY_PORT = 65_080;
