/** History of many agents that send to each other while the daemon is killed repeatedly: its invariants. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { FabricHistory, readAll, sendMany } from "../../harness/fabric-checker.ts";
import { Chance } from "../../harness/random.ts";

const LONG = process.env.ROOMD_TEST_LONG === "1";
const {
  agents: AGENTS,
  messages: MESSAGES,
  kills: KILLS,
} = LONG ? { agents: 50, messages: 200_000, kills: 10 } : { agents: 8, messages: 2400, kills: 3 };
const ROOM = "/v1/rooms/history";

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_AUDIT_READS: "false" } });
});
afterAll(() => daemon.stop());

const chance = new Chance();
test(
  `${AGENTS} agents, ${MESSAGES} messages, ${KILLS} kills: no message is lost, duplicated or reordered (ROOMD_TEST_SEED=${chance.seed})`,
  async () => {
    if (!LONG)
      console.log("fabric history: short run; ROOMD_TEST_LONG=1 has 50 agents, 200,000 messages and ten kills");
    const agents = Array.from({ length: AGENTS }, (_, index) => `agent-${index}`);
    await daemon.room("history");
    for (const agent of agents) await daemon.ok("GET", `${ROOM}/messages?agent_id=${agent}`);
    const history = new FabricHistory();
    let over = false;
    const readers = agents.map((agent) => readAll(daemon, history, { path: ROOM, agent, over: () => over }));
    const senders = agents.map((source) =>
      sendMany(daemon, history, { path: ROOM, source, agents, count: MESSAGES / AGENTS, random: chance }),
    );
    const sending = Promise.all(senders);
    let killed = 0;
    const killing = (async () => {
      for (; killed < KILLS; killed++) {
        // At a moment of chance within each part of the whole.
        const target = ((killed + chance.next()) / KILLS) * MESSAGES * 0.95;
        while (history.acknowledged.length < target) await Bun.sleep(5);
        await daemon.restart("SIGKILL");
      }
    })();
    await Promise.all([sending, killing]);
    over = true;
    await Promise.all(readers);
    expect(killed).toBe(KILLS);
    expect(history.acknowledged).toHaveLength(MESSAGES);
    expect(history.breaches().slice(0, 10)).toEqual([]);
    expect(history.missing).toBe(0);
  },
  LONG ? 1_800_000 : 60_000,
);

test("the checker detects faulty histories", () => {
  const sent = (message_id: string, number: number) => ({ source: "a", destination: "b", message_id, number });
  const seen = (message_id: string, number: number, seq: number, after = 0) => ({
    ...{ message_id, source: "a", number, seq, after },
  });
  const of = (...all: ReturnType<typeof seen>[]) => {
    const history = new FabricHistory();
    history.acknowledged.push(sent("m0", 0), sent("m1", 1));
    history.saw("b", all);
    return history.breaches();
  };
  expect(of(seen("m0", 0, 1), seen("m1", 1, 2))).toEqual([]);
  expect(of(seen("m0", 0, 1))).toEqual(["m1 of a never came to b"]);
  expect(of(seen("m0", 0, 1), seen("m1", 1, 2), seen("m1", 1, 2, 2)).join()).toContain("m1 twice");
  expect(of(seen("m1", 1, 2), seen("m0", 0, 3)).join()).toContain("number 1 of a after -1");
  expect(of(seen("m0", 0, 1), seen("m1", 1, 2, 2)).join()).toContain("before its cursor 2");
});
