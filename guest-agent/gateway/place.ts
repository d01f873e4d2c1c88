/** Where programs in the guest reach their room. */

/** By this name, which /etc/hosts has. */
export const ROOM_NAME = "room.internal";
/** An address of the loopback of its own: port 80 of the others stays free for whatever the guest serves. */
export const ROOM_ADDRESS = "127.0.0.80";
export const ROOM_PORT = 80;
/** Where the agent takes the connections, to which a rule of the network turns them. */
export const GATEWAY_PORT = 65_080;
