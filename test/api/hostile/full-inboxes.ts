/** Messages to agents with full inboxes, all of them refused. */
import { Database } from "bun:sqlite";
import { join } from "node:path";
import { MAX_INBOX } from "../../../shared/api/fabric.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { type Attack, call, each, keepCalling, makeAgent } from "../../harness/hostile/attack.ts";

const AGENTS = 1_000;

/** Sends the room's one message again, as often as an inbox takes messages. */
function fill(daemon: TestDaemon): void {
  const rows = new Database(join(daemon.dataDir, "roomd.db"));
  const again = (table: string, changed: Record<string, string>) => {
    const names = rows.query<{ name: string }, []>(`SELECT name FROM pragma_table_info('${table}')`).all();
    const columns = names.map(({ name }) => name);
    const values = columns.map((column) => changed[column] ?? column);
    rows.run(
      `WITH RECURSIVE n (n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM n WHERE n < ?)
       INSERT INTO ${table} (${columns}) SELECT ${values} FROM ${table}, n WHERE true`,
      [MAX_INBOX - 1],
    );
  };
  again("deliveries", { seq: "seq + n" });
  again("messages", { seq: "seq + n", message_id: "message_id || n" });
  rows.close();
}

export default {
  title: "messages to 1,000 agents with full inboxes",
  prepare: async (daemon) => {
    await daemon.room("r");
    await each(AGENTS, 64, (n) => makeAgent(daemon, "r", `agent-${n}`));
    await daemon.ok("POST", "/v1/rooms/r/messages", { source: "agent-0", destination: "*", payload: 1 });
    await daemon.end("SIGTERM");
    fill(daemon);
    await daemon.serve();
  },
  attack: async (target, count) => {
    const destinations = Array.from({ length: AGENTS }, (_, n) => `agent-${n}`);
    const toAll = [{ destination: "*" }, { destinations }];
    await keepCalling(16, count, (n) =>
      call(target, "POST", "/v1/rooms/r/messages", { source: "b", payload: 1, ...toAll[n % 2] }),
    );
  },
  expected: ["429 inbox_full"],
} satisfies Attack;
