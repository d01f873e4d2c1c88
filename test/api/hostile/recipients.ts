/** Reads with thousands of agents in the response. */
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";
import everyone from "./everyone.ts";

export default {
  title: "reads of a message with 5,000 recipients, and of 1,000 agents",
  prepare: async (daemon) => {
    await everyone.prepare(daemon);
    const message = { source: "b", destination: "*", payload: 1, message_id: "to-all" };
    await daemon.ok("POST", "/v1/rooms/r/messages", message);
  },
  attack: async (target, count) => {
    const paths = ["/messages/to-all", "/agents?limit=1000"];
    await keepCalling(16, count, (n) => call(target, "GET", `/v1/rooms/r${paths[n % 2]}`));
  },
} satisfies Attack;
