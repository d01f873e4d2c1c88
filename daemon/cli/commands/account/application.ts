/** `roomd application`: applications that members of an organization have authorized by signing in, for callers with `org:admin`. */

import type { Command } from "commander";
import { applicationEnd, applicationList } from "../../../../shared/api/grants.ts";
import { commandGroup } from "../../kit/command.ts";
import { fieldLines } from "../../kit/output.ts";
import { columns, verb } from "../../kit/verb.ts";

const org_id = "self";
const GRANT = "kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D";

export function applicationCommand(): Command {
  return commandGroup("application", {
    summary: "applications that members have authorized",
    notes: ["These need a key with the scope org:admin."],
    examples: ["roomd application list", `roomd application end ${GRANT}`],
  })
    .addCommand(
      verb(applicationList, "list", "list the applications of an organization's members", {
        examples: ["roomd application list", "roomd application list --json"],
        fixed: { org_id },
        lines: columns(
          ["GRANT", (each) => each.grant_id],
          ["APPLICATION", (each) => each.client_name],
          ["MEMBER", (each) => each.user_name],
          ["ROOMS", (each) => each.room_ids?.join(" ") ?? "all"],
          ["CREATED", (each) => each.created_at],
          ["LAST USED", (each) => each.last_used_at],
          ["EXPIRES", (each) => each.expires_at],
        ),
      }),
    )
    .addCommand(
      verb(
        applicationEnd,
        "end <grant-id>",
        "revoke an application's access; its webhooks, ports and SSH keys end too",
        {
          examples: [`roomd application end ${GRANT}`],
          fixed: { org_id },
          lines: fieldLines,
        },
      ),
    );
}
