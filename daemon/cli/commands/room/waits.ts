/** `roomd waits`: which agents of a room wait for which, cycles of waits first. */
import type { Command } from "commander";
import { roomWaits } from "../../../../shared/api/overview/overview.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { type JsonOption, paint, printable, show, table } from "../../kit/output.ts";

const MAX_NAMES = 5;

export function waitsCommand(): Command {
  return command("waits <room>", {
    summary: "print which agents wait for which: replies, barriers, messages, commands",
    examples: ["roomd waits build-42", "roomd waits build-42 --json | jq '.cycles[].text'"],
    notes: ["Deadlocks are listed first: agents that wait for each other, none of which can continue by itself."],
  }).action(async (room_id: string, options: JsonOption) => {
    await show(await call(roomWaits, { room_id }), options, ({ waits, cycles, text, truncated }) => {
      if (waits.length === 0) return [printable(text)];
      return [
        ...cycles.map((cycle) => paint("red", printable(cycle.text))),
        ...table(
          ["AGENT", "WAITS FOR", "ID", "ON", "SINCE", "NOW", "ABOUT"],
          waits.map(({ agent_id, type, id, on, since, held, about }) => {
            const more = on.length > MAX_NAMES ? ` and ${on.length - MAX_NAMES} more` : "";
            return [agent_id, type, id, on.slice(0, MAX_NAMES).join(" ") + more, since, held ? "yes" : "no", about];
          }),
        ),
        ...(truncated ? [paint("dim", "there are more waits")] : []),
      ];
    });
  });
}
