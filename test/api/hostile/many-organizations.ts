/** Organizations that each use all the time they can get, in pieces of 2 ms. */
import { type Attack, call, each, keepCalling } from "../../harness/hostile/attack.ts";
import { bearer } from "../calls.ts";

const ORGS = 50;
/** A page of them takes 2 ms. */
const MESSAGES = 60;

export default {
  title: "50 organizations with calls of 2 ms",
  mostP99Ms: 40,
  everyMs: 20,
  prepare: async (daemon) => {
    const keys: string[] = [];
    await each(ORGS, 8, async (n) => {
      const { body } = await daemon.api("POST", "/v1/orgs", { name: `org ${n}` }, bearer(daemon.operatorKey));
      const key = String(body.api_key);
      keys.push(key);
      await daemon.api("POST", "/v1/rooms", { room_id: "r" }, bearer(key));
      const messages = Array.from({ length: MESSAGES }, () => ({ source: "b", topic: "none", payload: 1 }));
      const { status } = await daemon.api("POST", "/v1/rooms/r/messages/batch", { messages }, bearer(key));
      if (status !== 202) throw new Error(`messages of ${n}: ${status}`);
    });
    return keys;
  },
  attack: async (target, count) => {
    const keys = target.prepared as string[];
    await keepCalling(2 * ORGS, count, (_, lane) =>
      call({ ...target, key: keys[lane % ORGS] ?? "" }, "GET", `/v1/rooms/r/messages?limit=${MESSAGES}`),
    );
  },
} satisfies Attack;
