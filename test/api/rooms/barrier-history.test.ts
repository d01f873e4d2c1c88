/** Invariants of a barrier's history: agents are late, arrive twice, time out and return, while the daemon is killed. */
import { afterAll, beforeAll, expect, test } from "vitest";
import type { Json } from "../../harness/daemon.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { Chance } from "../../harness/random.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";
const {
  agents: AGENTS,
  rounds: ROUNDS,
  kills: KILLS,
} = LONG ? { agents: 40, rounds: 500, kills: 10 } : { agents: 8, rounds: 40, kills: 3 };
const BARRIERS = "/v1/rooms/history/barriers";
/** Error codes of a call that does not end in a release; each is retried. */
const TYPED = ["barrier_timeout", "barrier_cancelled", "shutting_down"];

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start();
});
afterAll(() => daemon.stop());

const chance = new Chance();
test(
  `${AGENTS} agents, ${ROUNDS} rounds, ${KILLS} kills: each generation is released exactly once (ROOMD_TEST_SEED=${chance.seed})`,
  async () => {
    if (!LONG) console.log("barrier history: short run; ROOMD_TEST_LONG=1 has 40 agents, 500 rounds and ten kills");
    await daemon.room("history");
    /** Release of each generation, as returned to each agent that passed it. */
    const releases = new Map<number, { released_at: string; arrived: string[] }[]>();
    const ends = new Map<string, number>();
    let passed = 0;

    const arrive = async (agent_id: string, generation: number): Promise<Json | null> => {
      const timeout_ms = chance.next() < 0.3 ? Math.floor(chance.next() * 20) : 20_000;
      const body = { barrier_id: "b", agent_id, parties: AGENTS, generation, timeout_ms };
      const answer = await daemon.api("POST", BARRIERS, body).catch(() => null);
      const how = answer === null ? "lost" : (answer.body.code ?? answer.body.state);
      ends.set(how, (ends.get(how) ?? 0) + 1);
      if (answer === null || answer.status === 202 || TYPED.includes(answer.body.code)) return null;
      if (answer.status !== 200) throw new Error(`${agent_id} at ${generation}: ${JSON.stringify(answer.body)}`);
      return answer.body;
    };

    const agent = async (name: string) => {
      for (let generation = 1; generation <= ROUNDS; ) {
        if (chance.next() < 0.2) await Bun.sleep(chance.next() * 10);
        const twice = chance.next() < 0.2 ? [1, 2] : [1];
        const answers = await Promise.all(twice.map(() => arrive(name, generation)));
        const released = answers.find((answer) => answer !== null);
        if (!released) {
          await Bun.sleep(5);
          continue;
        }
        expect(released).toMatchObject({ generation, state: "released", parties: AGENTS, missing: [] });
        releases.set(generation, [...(releases.get(generation) ?? []), released]);
        passed++;
        generation++;
      }
    };
    const killing = (async () => {
      for (let killed = 0; killed < KILLS; killed++) {
        const target = ((killed + chance.next()) / KILLS) * ROUNDS * AGENTS * 0.95;
        while (passed < target) await Bun.sleep(5);
        await daemon.restart("SIGKILL");
      }
    })();
    const names = Array.from({ length: AGENTS }, (_, index) => `agent-${index}`);
    await Promise.all([killing, ...names.map(agent)]);
    for (const [generation, results] of releases) {
      expect([generation, new Set(results.map(({ released_at }) => released_at)).size]).toEqual([generation, 1]);
      for (const { arrived } of results) expect(arrived.toSorted()).toEqual(names.toSorted());
    }
    console.log(`barrier history: ${JSON.stringify(Object.fromEntries(ends))}`);
    expect(releases.size).toBe(ROUNDS);
    expect((await daemon.ok("GET", `${BARRIERS}/b`)).generation).toBe(ROUNDS);
  },
  LONG ? 900_000 : 60_000,
);
