/** Messages with many recipients while the daemon is killed between the commits that write them: each is in all inboxes or in none. */
import { afterEach, expect, test } from "vitest";
import { FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { type Json, TestDaemon } from "../../harness/daemon.ts";
import { until } from "../../harness/guests.ts";

const AGENTS = 700;
const ROOM = "/v1/rooms/spread";

let daemon: TestDaemon;
afterEach(() => daemon.stop());

/** 699 deliveries are three commits, and one keeps the message. */
test.each(["message.staged=kill", "message.staged=kill@2", "message.staged=kill@3"])(
  "a daemon that is killed at %s completes the delivery to all recipients once",
  async (point) => {
    daemon = await TestDaemon.start({ env: { ROOMD_AUDIT_READS: "false", [FAULT_VARIABLE]: point } });
    await daemon.room("spread");
    const agents = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
    for (let from = 0; from < AGENTS; from += 200) {
      const messages = agents.slice(from, from + 200).map((source) => ({ source, destination: source, payload: 0 }));
      await daemon.ok("POST", `${ROOM}/messages/batch`, { messages });
    }
    const send = () =>
      daemon.ok("POST", `${ROOM}/messages`, { source: "agent-0", destination: "*", payload: 1, message_id: "all" });
    await expect(send()).rejects.toThrow();
    delete daemon.env[FAULT_VARIABLE];
    await until("the daemon has exited", () => !daemon.runs);
    await daemon.serve();
    const inboxOf = async (agent: string) =>
      (await daemon.ok("GET", `${ROOM}/messages?agent_id=${agent}`)).items.filter(({ seq }: Json) => seq > AGENTS);
    for (const agent of ["agent-1", "agent-400", "agent-699"]) expect(await inboxOf(agent)).toEqual([]);
    await daemon.ok("POST", `${ROOM}/messages`, { source: "agent-0", destination: "agent-1", payload: 2 });
    await send();
    const seqs = async (agent: string) => (await inboxOf(agent)).map(({ seq }: Json) => seq - AGENTS);
    expect([await seqs("agent-1"), await seqs("agent-400"), await seqs("agent-699")]).toEqual([[1, 2], [2], [2]]);
  },
  60_000,
);
