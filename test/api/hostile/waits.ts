/** Thousands of waits for the messages of a room, woken by one. */
import { type Attack, call, keepCalling, makeAgent, sendEvery } from "../../harness/hostile/attack.ts";

const WAITS = 5_000;
const EVERY_MS = 500;

export default {
  title: "5,000 waits for the messages of a room, and one message",
  prepare: async (daemon) => {
    await daemon.room("r");
    await makeAgent(daemon, "r", "a");
  },
  attack: async (target, count) => {
    sendEvery(EVERY_MS, target, count);
    await keepCalling(WAITS, count, () => call(target, "GET", "/v1/rooms/r/messages?after=1000000&wait_ms=50000"));
  },
} satisfies Attack;
