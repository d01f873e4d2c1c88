/**
 * Terminals with clients that resize them at full speed: each burst has the maximum number of messages that a client may send in one turn
 * of the event loop.
 */
import { agentOf, roomOf, ScaleGuests } from "../../bench/scale-guests.ts";
import type { Attack } from "../../harness/hostile/attack.ts";

const SOCKETS = 8;
const BURST = 1_900;
/** Unsent bytes above which the next burst waits. */
const MAX_UNSENT_BYTES = 64 * 1024;

let guests: ScaleGuests | null = null;

export default {
  title: "8 terminals whose clients resize them without a pause",
  env: { ROOMD_ACCELERATION: "tcg", ROOMD_VSOCK_TRANSPORT: "vhost-user", ROOMD_POOL_SIZE: "0" },
  prepare: async (daemon) => {
    await daemon.room(roomOf(0));
    guests = new ScaleGuests(daemon);
    await guests.become(SOCKETS);
  },
  finish: async () => await guests?.[Symbol.asyncDispose](),
  attack: async ({ url, key }, count) => {
    const resizes = [1, 2].map((rows) => JSON.stringify({ type: "resize", rows, cols: 80 }));
    const open = (n: number) => {
      const path = `/v1/rooms/${roomOf(n)}/sandboxes/${agentOf(n)}/terminals/term_${n}/ws?takeover=1`;
      const socket = new WebSocket(url.replace(/^http/, "ws") + path, { headers: { authorization: `Bearer ${key}` } });
      const flood = () => {
        if (socket.readyState !== WebSocket.OPEN) return;
        if (socket.bufferedAmount < MAX_UNSENT_BYTES) {
          for (let sent = 0; sent < BURST; sent++) socket.send(resizes[sent % 2] ?? "");
          count("burst");
        }
        setImmediate(flood);
      };
      socket.onmessage = ({ data }) => {
        count(String(Object(JSON.parse(String(data))).type));
        flood();
      };
      socket.onclose = ({ code }) => {
        count(`closed ${code}`);
        setTimeout(open, 100, n);
      };
    };
    for (let n = 0; n < SOCKETS; n++) open(n);
    await new Promise(() => {});
  },
} satisfies Attack;
