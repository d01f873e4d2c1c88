/** Messages to all agents of a room. */
import { type Attack, call, each, keepCalling, makeAgent } from "../../harness/hostile/attack.ts";

const AGENTS = 5_000;

export default {
  title: "messages to * of 5,000 agents",
  mostP99Ms: 15,
  prepare: async (daemon) => {
    await daemon.room("r");
    await each(AGENTS, 64, (n) => makeAgent(daemon, "r", `agent-${n}`));
  },
  attack: async (target, count) =>
    await keepCalling(4, count, () =>
      call(target, "POST", "/v1/rooms/r/messages", { source: "b", destination: "*", payload: 1 }),
    ),
} satisfies Attack;
