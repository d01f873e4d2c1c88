/** Destruction of a sandbox while the maximum number of barriers of a room name its agent. */
import { NO_GUESTS } from "../../harness/daemon.ts";
import { type Attack, call, each } from "../../harness/hostile/attack.ts";
import { DESCRIBED_MIN_MIB, describeTemplate } from "../sandboxes/described-template.ts";

const NAMES = Array.from({ length: 999 }, (_, n) => `${n}-`.padEnd(128, "x"));
/** Of 64 MiB together. */
const BARRIERS = 170;

export default {
  title: "the end of a sandbox beside 64 MiB of barriers that name its agent",
  mostP99Ms: 25,
  env: NO_GUESTS,
  prepare: async (daemon) => {
    describeTemplate(daemon);
  },
  attack: async (target, count) => {
    for (let round = 0; ; round++) {
      const room = `/v1/rooms/r-${round}`;
      const agent_id = "worker-1";
      await call(target, "POST", "/v1/rooms", { room_id: `r-${round}` });
      const sandbox = { agent_id, guest_cid: 9100 + round, memory_mib: DESCRIBED_MIN_MIB };
      const made = await call(target, "POST", `${room}/sandboxes/from-template?wait=none`, sandbox);
      count(String(made.status));
      await each(BARRIERS, 8, async (n) => {
        const barrier = { barrier_id: `b-${n}`, agent_id: NAMES[0], participants: [agent_id, ...NAMES], timeout_ms: 0 };
        count(String((await call(target, "POST", `${room}/barriers`, barrier)).status));
      });
      const { status } = await call(target, "DELETE", `${room}/sandboxes/${agent_id}`);
      count(`end ${status}`);
    }
  },
} satisfies Attack;
