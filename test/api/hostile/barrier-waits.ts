/** Waits at barriers that name many agents, and short arrivals at them. */
import { type Attack, call, keepCalling, type Target } from "../../harness/hostile/attack.ts";
import { bearer } from "../calls.ts";

const WAITS = 2_032;
const NAMES = 900;

const names = Array.from({ length: NAMES }, (_, n) => `agent-${n}`);

/** Whether all agents wait except the agent that never arrives. */
async function areKept({ url, key }: Target): Promise<boolean> {
  const response = await fetch(`${url}/v1/rooms/r/waits`, { headers: bearer(key) });
  return ((await response.json()) as { waits: unknown[] }).waits.length === NAMES - 1;
}

export default {
  title: "2,032 waits at a barrier with 900 names, and arrivals for 1 ms",
  mostP99Ms: 40,
  prepare: async (daemon) => {
    await daemon.room("r");
    const opened = { barrier_id: "b", agent_id: "agent-0", participants: names, timeout_ms: 0 };
    await daemon.ok("POST", "/v1/rooms/r/barriers", opened);
  },
  attack: async (target, count) => {
    // The last of them never arrives.
    const arrive = (n: number, timeout_ms: number) =>
      call(target, "POST", "/v1/rooms/r/barriers", {
        barrier_id: "b",
        agent_id: `agent-${n % (NAMES - 1)}`,
        timeout_ms,
      });
    for (let n = 0; n < WAITS; n++)
      void arrive(n, 300_000).then(
        ({ code }) => count(`wait ended by ${code}`),
        () => count("broken"),
      );
    while (!(await areKept(target))) await Bun.sleep(100);
    // After the others of its key.
    await arrive(0, 1);
    count("waits kept");
    await keepCalling(16, count, (n) => arrive(n, 1));
  },
  expected: ["waits kept", "409 barrier_timeout"],
} satisfies Attack;
