/** `roomd application`: applications that members of an organization have authorized by signing in, for callers with `org:admin`. */
import type { Command } from "commander";
import { applicationEnd, applicationList } from "../../../../shared/api/grants.ts";
import { call } from "../../kit/client.ts";
import { command, commandGroup } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { fieldLines, type JsonOption, moreLines, show, table } from "../../kit/output.ts";

const org_id = "self";
const GRANT = "kid_01J8ZQ4T9V6W3X2Y1Z0A5B7C8D";

export function applicationCommand(): Command {
  return commandGroup("application", {
    summary: "applications that members have authorized",
    notes: ["These need a key with the scope org:admin."],
    examples: ["roomd application list", `roomd application end ${GRANT}`],
  })
    .addCommand(list())
    .addCommand(end());
}

function list(): Command {
  const about = {
    summary: "list the applications of an organization's members",
    examples: ["roomd application list", "roomd application list --json"],
  };
  return asList(command("list", about)).action(async ({ limit, cursor, json }: ListOptions) => {
    const reply = await call(applicationList, { org_id, limit, cursor });
    await show(reply, { json }, ({ items, next_cursor }) => [
      ...table(
        ["GRANT", "APPLICATION", "MEMBER", "ROOMS", "CREATED", "LAST USED", "EXPIRES"],
        items.map((each) => [
          each.grant_id,
          each.client_name,
          each.user_name,
          each.room_ids === null ? "all" : each.room_ids.join(" "),
          each.created_at,
          each.last_used_at,
          each.expires_at,
        ]),
      ),
      ...moreLines(next_cursor),
    ]);
  });
}

function end(): Command {
  return command("end <grant-id>", {
    summary: "revoke an application's access; its webhooks, ports and SSH keys end too",
    examples: [`roomd application end ${GRANT}`],
  }).action(async (grant_id: string, options: JsonOption) => {
    await show(await call(applicationEnd, { org_id, grant_id }), options, fieldLines);
  });
}
