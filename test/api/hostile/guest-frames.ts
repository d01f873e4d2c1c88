/** Guests that send the smallest frames as fast as they are taken. */
import { agentOf, roomOf, ScaleGuests } from "../../bench/scale-guests.ts";
import type { Attack } from "../../harness/hostile/attack.ts";
import { bearer } from "../calls.ts";

const GUESTS = 20;
/** As played-agent.ts has it. */
const FLOOD = "flood";

let guests: ScaleGuests | null = null;

export default {
  title: "20 guests that send pings and output in pieces of one byte",
  mostP99Ms: 20,
  env: { ROOMD_ACCELERATION: "tcg", ROOMD_VSOCK_TRANSPORT: "vhost-user", ROOMD_POOL_SIZE: "0" },
  prepare: async (daemon) => {
    await daemon.room(roomOf(0));
    guests = new ScaleGuests(daemon);
    await guests.become(GUESTS);
  },
  finish: async () => await guests?.[Symbol.asyncDispose](),
  attack: async ({ url, key }, count) => {
    const follow = async (n: number) => {
      const path = `/v1/rooms/${roomOf(n)}/sandboxes/${agentOf(n)}/executions/${FLOOD}/stream`;
      const response = await fetch(url + path, { headers: bearer(key) });
      count(String(response.status));
      for await (const _ of response.body ?? []) count("part");
    };
    for (;;) {
      await Promise.all(Array.from({ length: GUESTS }, (_, n) => follow(n).catch(() => count("broken"))));
      await Bun.sleep(100);
    }
  },
} satisfies Attack;
