/** The commands for the agents of the room, and for this sandbox itself. */
import { Command } from "commander";
import { call, type Json, OWN_AGENT, print } from "./api.ts";

interface Agent extends Json {
  agent_id: string;
  sandbox_state: string | null;
  inbox_depth: number;
}

export function ownCommands(): Command[] {
  const own = `/sandboxes/${encodeURIComponent(OWN_AGENT)}`;
  const whoami = new Command("whoami")
    .description("print this sandbox's own record")
    .action(async (options: { json?: boolean }) => {
      const record = await call("GET", own);
      print(record, options, () => [`${record.agent_id} in ${record.room_id}`]);
    });
  const agents = new Command("agents")
    .description("list the agents of the room")
    .action(async (options: { json?: boolean }) => {
      const items: Agent[] = [];
      for (let cursor: string | null = ""; cursor !== null; ) {
        const page: Json = await call("GET", `/agents?limit=1000${cursor && `&cursor=${encodeURIComponent(cursor)}`}`);
        items.push(...(page.items as Agent[]));
        cursor = page.next_cursor as string | null;
      }
      print(items, options, () =>
        items.map(({ agent_id, sandbox_state, inbox_depth }) => `${agent_id} ${sandbox_state ?? "-"} ${inbox_depth}`),
      );
    });
  const expose = new Command("expose")
    .description("make a port of this sandbox reachable from outside")
    .argument("<port>")
    .option("--public", "without a token")
    .action(async (port: string, options: { json?: boolean; public?: boolean }) => {
      const visibility = options.public ? "public" : "private";
      const exposed = await call("POST", `${own}/ports`, { port: Number(port), visibility });
      print(exposed, options, () => [String(exposed.url)]);
    });
  return [whoami, agents, expose];
}
