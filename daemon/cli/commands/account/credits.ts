/** `roomd credits`: credits granted to the organization, and the amount spent. */
import type { Command } from "commander";
import { creditList } from "../../../../shared/api/people/credits.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { moreLines, show, table } from "../../kit/output.ts";
import { asList, type ListOptions } from "../room/room.ts";

export function creditsCommand(): Command {
  const about = {
    summary: "list credits granted to the organization and spent by it",
    notes: ["Newest first. Credits of the plan are not listed. `roomd org credits` on the host grants more."],
    examples: ["roomd credits", "roomd credits --limit 10 --json"],
  };
  return asList(command("credits", about)).action(async ({ limit, cursor, json }: ListOptions) => {
    const reply = await call(creditList, { org_id: "self", limit, cursor });
    await show(reply, { json }, ({ granted, used, remaining, items, next_cursor }) => [
      granted === null ? `no limit; ${used} used` : `${remaining} of ${granted} left; ${used} used`,
      ...table(
        ["WHEN", "WHAT", "CREDITS", "REASON"],
        items.map(({ at, kind, amount, reason }) => [at, kind, amount, reason]),
      ),
      ...moreLines(next_cursor),
    ]);
  });
}
