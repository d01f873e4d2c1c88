/** Messages on a host of several that has many rooms, which it compares with the directory after commits. */
import { type Attack, call, each } from "../../harness/hostile/attack.ts";

const ROOMS = 2_000;
const EVERY_MS = 20;

export default {
  title: "2,000 rooms of a host of two, and a message each 20 ms",
  hosts: 2,
  prepare: async (daemon) =>
    await each(ROOMS, 12, (n) => daemon.ok("POST", "/v1/rooms", { room_id: `r-${n}`, host: "host-1" })),
  attack: async (target, count) => {
    const message = { source: "b", topic: "none", payload: 1 };
    setInterval(() => {
      void call(target, "POST", "/v1/rooms/r-0/messages", message).then(
        ({ status }) => count(String(status)),
        () => count("broken"),
      );
    }, EVERY_MS);
    await new Promise(() => {});
  },
  expected: ["202"],
} satisfies Attack;
