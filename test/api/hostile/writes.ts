/** Many concurrent writes of some milliseconds each. */
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";

const WRITES = 512;

export default {
  title: "512 calls that write 2 ms each",
  mostP99Ms: 25,
  prepare: async (daemon) => {
    await daemon.room("r");
  },
  attack: async (target, count) => {
    const messages = Array.from({ length: 40 }, () => ({ source: "b", topic: "none", payload: "x".repeat(200) }));
    await keepCalling(WRITES, count, () => call(target, "POST", "/v1/rooms/r/messages/batch", { messages }));
  },
} satisfies Attack;
