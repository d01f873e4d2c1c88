/** WebSockets that send empty messages. */
import type { Attack } from "../../harness/hostile/attack.ts";

const SOCKETS = 8;
const BURST = 50_000;

export default {
  title: "8 WebSockets of empty messages",
  attack: async ({ url, key }, count) => {
    const open = () => {
      const socket = new WebSocket(`${url.replace(/^http/, "ws")}/v1/live/ws`, {
        headers: { authorization: `Bearer ${key}` },
      });
      socket.onopen = () => {
        count("opened");
        for (let n = 0; n < BURST; n++) socket.send("");
      };
      socket.onmessage = () => count("message");
      socket.onclose = ({ code }) => {
        count(`closed ${code}`);
        open();
      };
    };
    for (let n = 0; n < SOCKETS; n++) open();
    await new Promise(() => {});
  },
} satisfies Attack;
