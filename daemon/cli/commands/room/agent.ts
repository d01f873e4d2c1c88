/** `roomd agent`: the agents of a room, and the topics to which each is subscribed. */
import type { Command } from "commander";
import { agentList, agentSubscribe } from "../../../../shared/api/fabric.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { type JsonOption, moreLines, show, table } from "../../kit/output.ts";
import { asList, type ListOptions } from "./room.ts";

export function agentCommand(): Command {
  return commandGroup("agent", {
    summary: "the agents of a room, with and without a sandbox",
    examples: ["roomd agent list build-42", "roomd agent subscribe build-42 operator 'builds.*'"],
  })
    .addCommand(list())
    .addCommand(subscribe());
}

function list(): Command {
  const about = {
    summary: "list the agents with their inbox sizes and current waits",
    examples: ["roomd agent list build-42"],
  };
  return asList(command("list <room>", about)).action(async (room_id: string, { limit, cursor, json }: ListOptions) => {
    await show(await call(agentList, { room_id, limit, cursor }), { json }, ({ items, next_cursor }) => [
      ...table(
        ["AGENT", "SANDBOX", "INBOX", "WAITS FOR", "TOPICS", "LAST SEEN"],
        items.map((agent) => [
          agent.agent_id,
          agent.sandbox_state,
          agent.inbox_depth,
          agent.waiting_on.map(({ type, id }) => (id === null ? type : `${type} ${id}`)).join(", "),
          agent.topics.join(" "),
          agent.last_seen_at,
        ]),
      ),
      ...moreLines(next_cursor),
    ]);
  });
}

function subscribe(): Command {
  return command("subscribe <room> <agent> [topics...]", {
    summary: "set the topics that an agent subscribes to, replacing the previous ones",
    notes: [
      "In a pattern * matches one word, and a trailing > all that follow. Without TOPICS the agent is subscribed to none.",
    ],
    examples: ["roomd agent subscribe build-42 operator 'builds.*' releases"],
  }).action(async (room_id: string, agent_id: string, topics: string[], options: JsonOption) => {
    const reply = await call(agentSubscribe, { room_id, agent_id, topics });
    await show(reply, options, (now) => [`${agent_id} listens to ${now.topics.join(" ") || "no topic"}`]);
  });
}
