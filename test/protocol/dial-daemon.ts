/** Connection of a real agent to a real GuestConnection in tests: over a socket pair. */
import type { GuestConnection } from "../../daemon/host/guest-link/connection.ts";
import { type LinkedSocket, linkSocket } from "../../daemon/host/guest-link/link-socket.ts";
import { socketPair } from "../../guest-agent/libc.ts";
import { type Served, serve } from "../../guest-agent/link.ts";
import { adopt } from "../../guest-agent/socket-link.ts";
import { NO_QUIRKS } from "../../shared/agent-protocol/device-quirks.ts";
import { HOST_PORT } from "../../shared/agent-protocol/messages.ts";

interface Dial {
  /** The daemon's port; the agent dials HOST_PORT. */
  port?: number;
  /** The agent's source port, as its transport reports it. */
  from?: number | null;
  /** The connection ends when the agent sends its second message. */
  losesReady?: boolean;
}

/** Resolves as `serve` does, once the connection has ended. */
export async function dialDaemon(
  connection: GuestConnection,
  served: Served,
  cid: number,
  { port = HOST_PORT, from = null, losesReady = false }: Dial = {},
) {
  const [own, guests] = socketPair();
  let linked: LinkedSocket | undefined;
  let byteCount = 0;
  await adopt(own, {
    open: (socket) => {
      linked = linkSocket(socket, { to: port, from }, NO_QUIRKS);
      connection.accept(linked.link);
    },
    data: (socket, bytes) => {
      if (losesReady && byteCount++ > 0) socket.end();
      else linked?.receive(new Uint8Array(bytes));
    },
    drain: () => linked?.drain(),
    close: () => linked?.end("the guest closed it"),
  });
  return serve(guests, HOST_PORT, served, () => cid);
}
