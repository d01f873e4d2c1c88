/** `roomd credits`: credits granted to the organization, and the amount spent. */

import type { Command } from "commander";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { creditList } from "../../../../shared/api/people/credits.ts";
import { columns, verb } from "../../kit/verb.ts";

type CreditChange = OutputOf<typeof creditList>["items"][number];

const changeLines = columns<CreditChange>(
  ["WHEN", ({ at }) => at],
  ["WHAT", ({ kind }) => kind],
  ["CREDITS", ({ amount }) => amount],
  ["REASON", ({ reason }) => reason],
);

export const creditsCommand = (): Command =>
  verb(creditList, "credits", "list credits granted to the organization and spent by it", {
    notes: ["Newest first. Credits of the plan are not listed. `roomd org credits` on the host grants more."],
    examples: ["roomd credits", "roomd credits --limit 10 --json"],
    fixed: { org_id: "self" },
    lines: ({ granted, used, remaining, ...page }) => [
      granted === null ? `no limit; ${used} used` : `${remaining} of ${granted} left; ${used} used`,
      ...changeLines(page),
    ],
  });
