/** Reads of an inbox by a filter that no message passes. */
import { type Attack, call, each, keepCalling, makeAgent } from "../../harness/hostile/attack.ts";

const LANES = 16;

export default {
  title: "16 connections that read 300 messages of 60 KB by a filter that no message passes",
  mostP99Ms: 15,
  prepare: async (daemon) => {
    await daemon.room("r");
    await makeAgent(daemon, "r", "a");
    const message = { source: "b", destination: "a", payload: "x".repeat(60_000), ack_required: true };
    await each(300, 16, () => daemon.ok("POST", "/v1/rooms/r/messages", message));
  },
  attack: async (target, count) =>
    await keepCalling(LANES, count, () => call(target, "GET", "/v1/rooms/r/messages?agent_id=a&source=nobody")),
} satisfies Attack;
