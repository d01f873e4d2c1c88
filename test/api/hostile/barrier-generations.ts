/** Refused arrivals in a room with the maximum number of barrier generations. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { type Attack, call, keepCalling } from "../../harness/hostile/attack.ts";

const GENERATIONS = 170_000;

export default {
  title: "arrivals at new barriers beside 170,000 generations of one",
  prepare: async (daemon) => {
    const { room_uid } = await daemon.room("r");
    await daemon.end("SIGTERM");
    const rows = new Database(join(daemon.dataDir, "roomd.db"));
    rows.run(
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
       INSERT INTO barriers (room_uid, barrier_id, generation, state, parties, participants, arrived, dead, opened_at, ended_at)
       SELECT ?, 'b', n, 'released', 1, NULL, '["a"]', '[]', '2026-01-01T00:00:00.000Z', '2026-01-01T00:00:00.000Z' FROM n`,
      [GENERATIONS, room_uid],
    );
    rows.close();
    await daemon.serve();
  },
  attack: async (target, count) =>
    await keepCalling(16, count, (n) =>
      call(target, "POST", "/v1/rooms/r/barriers", {
        barrier_id: `new-${n}`,
        agent_id: "a",
        parties: 1000,
        timeout_ms: 0,
      }),
    ),
} satisfies Attack;
