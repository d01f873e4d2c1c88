/** Waits with a filter that no message passes, woken by messages. */
import { type Attack, call, keepCalling, sendEvery } from "../../harness/hostile/attack.ts";
import filter from "./filter.ts";

/** As many as an agent may have. */
const WAITS = 128;
const EVERY_MS = 1_000;

export default {
  title: "128 waits with a filter that no message passes, and a message a second",
  prepare: filter.prepare,
  attack: async (target, count) => {
    sendEvery(EVERY_MS, target, count);
    await keepCalling(WAITS, count, () =>
      call(target, "GET", "/v1/rooms/r/messages?agent_id=a&source=nobody&after=1000000&wait_ms=50000"),
    );
  },
} satisfies Attack;
