/** `roomd agent`: the agents of a room, and the topics to which each is subscribed. */
import type { Command } from "commander";
import { agentList, agentSubscribe } from "../../../../shared/api/fabric.ts";
import { commandGroup } from "../../kit/command.ts";
import { columns, verb } from "../../kit/verb.ts";

export function agentCommand(): Command {
  return commandGroup("agent", {
    summary: "the agents of a room, with and without a sandbox",
    examples: ["roomd agent list build-42", "roomd agent subscribe build-42 operator 'builds.*'"],
  })
    .addCommand(
      verb(agentList, "list <room>", "list the agents with their inbox sizes and current waits", {
        examples: ["roomd agent list build-42"],
        lines: columns(
          ["AGENT", (agent) => agent.agent_id],
          ["SANDBOX", (agent) => agent.sandbox_state],
          ["INBOX", (agent) => agent.inbox_depth],
          [
            "WAITS FOR",
            (agent) => agent.waiting_on.map(({ type, id }) => (id === null ? type : `${type} ${id}`)).join(", "),
          ],
          ["TOPICS", (agent) => agent.topics.join(" ")],
          ["LAST SEEN", (agent) => agent.last_seen_at],
        ),
      }),
    )
    .addCommand(
      verb(
        agentSubscribe,
        "subscribe <room> <agent> [topics...]",
        "set the topics that an agent subscribes to, replacing the previous ones",
        {
          notes: [
            "In a pattern * matches one word, and a trailing > all that follow. Without TOPICS the agent is subscribed to none.",
          ],
          examples: ["roomd agent subscribe build-42 operator 'builds.*' releases"],
          lines: ({ topics }, { agent_id }) => [`${agent_id} listens to ${topics.join(" ") || "no topic"}`],
        },
      ),
    );
}
