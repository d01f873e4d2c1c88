/** `roomd audit`: the audit records of a room or of the organization, and their summary. */
import type { Command } from "commander";
import * as audit from "../../../../shared/api/audit.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { type ConfigOption, withConfigOption, withOperator } from "../../host/operator.ts";
import { call } from "../../kit/client.ts";
import { choice, command, commandGroup } from "../../kit/command.ts";
import { asList, type ListOptions } from "../../kit/list-options.ts";
import { type JsonOption, moreLines, printable, show, showValue, table } from "../../kit/output.ts";
import { asked, type FilterOptions, withFilters } from "./audit-filters.ts";
import { auditExportCommand, auditFollowCommand } from "./audit-stream.ts";
import { auditVerifyCommand } from "./audit-verify.ts";

export function auditCommand(setStatus: (status: number) => void): Command {
  return commandGroup("audit", {
    summary: "the audit of a room or of the organization",
    examples: ["roomd audit build-42", "roomd audit --org --event sandbox.", "roomd audit verify"],
  })
    .addCommand(list(), { isDefault: true })
    .addCommand(summary())
    .addCommand(auditFollowCommand())
    .addCommand(auditExportCommand())
    .addCommand(auditVerifyCommand(setStatus));
}

interface AuditListOptions extends ListOptions, FilterOptions, ConfigOption {
  order?: "asc" | "desc";
  host?: boolean;
}

type Page = OutputOf<typeof audit.orgAuditList>;

function list(): Command {
  const about = {
    summary: "list records, newest first (the default of `roomd audit`)",
    examples: [
      "roomd audit build-42",
      "roomd audit list build-42 --event exec. --agent worker-1 --limit 20",
      "roomd audit --org --since 2026-01-31T12:00:00Z --outcome denied",
      "roomd audit --room build-41",
      "roomd audit --host --event auth.",
    ],
  };
  return withConfigOption(asList(withFilters(command("list [room]", about))))
    .option("--host", "records that belong to no organization, such as failed logins, read on the host itself")
    .addOption(choice("--order <order>", "newest (desc) or oldest (asc) first (default: desc)", ["desc", "asc"]))
    .action(async (room: string | undefined, { json, host, config, ...options }: AuditListOptions) => {
      const shown = ({ items, next_cursor }: Page) => [...rows(items), ...moreLines(next_cursor)];
      if (host) {
        const { ofOrg } = asked(room, { ...options, org: true });
        return await showValue(await withOperator({ config }, (on) => on.listAudit(ofOrg)), { json }, shown);
      }
      const { room_id, ofRoom, ofOrg } = asked(room, options);
      const reply =
        room_id === undefined
          ? await call(audit.orgAuditList, { org_id: "self", ...ofOrg })
          : await call(audit.auditList, { room_id, ...ofRoom });
      await show(reply, { json }, shown);
    });
}

function rows(items: audit.AuditRecord[]): string[] {
  return table(
    ["SEQ", "AT", "EVENT", "OUTCOME", "ROOM", "AGENT", "ACTOR", "STATUS", "CODE"],
    items.map((item) => [
      item.seq,
      item.at,
      item.event,
      item.outcome,
      item.room_id,
      item.agent_id,
      item.actor.name || item.actor.id,
      item.status,
      item.error_code,
    ]),
  );
}

function summary(): Command {
  const about = {
    summary: "summarize the events in one paragraph",
    examples: ["roomd audit summary build-42", "roomd audit summary --org --since 2026-01-31T00:00:00Z"],
  };
  return withFilters(command("summary [room]", about)).action(
    async (room: string | undefined, { json, ...options }: FilterOptions & JsonOption) => {
      const { room_id, ofRoom, ofOrg } = asked(room, options);
      const reply =
        room_id === undefined
          ? await call(audit.orgAuditSummary, { org_id: "self", ...ofOrg })
          : await call(audit.auditSummary, { room_id, ...ofRoom });
      await show(reply, { json }, ({ text }) => [printable(text)]);
    },
  );
}
