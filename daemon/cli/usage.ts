/** Owns `roomd usage`: what the organization has used. */
import { type Command, InvalidArgumentError } from "commander";
import { GROUPINGS, type Grouping, type UsageReport, type UsageTotals, usage } from "../../shared/api/usage.ts";
import { call } from "./client.ts";
import { choice, command } from "./command.ts";
import { bytesText, fieldLines, type JsonOption, show, table } from "./output.ts";

interface UsageOptions extends JsonOption {
  groupBy?: Grouping;
  month?: string;
}

export function usageCommand(): Command {
  return command("usage", {
    summary: "what the organization has used this month",
    examples: ["roomd usage", "roomd usage --group-by room", "roomd usage --group-by day --month 2026-01 --json"],
  })
    .addOption(choice("--group-by <what>", "one line for each room, agent, key or day", GROUPINGS))
    .option("--month <month>", "another month, such as 2026-01", month)
    .action(async ({ groupBy, month: asked, json }: UsageOptions) => {
      const reply = await call(usage, { org_id: "self", group_by: groupBy, month: asked });
      await show(reply, { json }, groupBy === undefined ? wholeLines : (report) => groupLines(report, groupBy));
    });
}

function month(text: string): string {
  if (!/^\d{4}-(0[1-9]|1[0-2])$/.test(text)) throw new InvalidArgumentError("It must be a month such as 2026-01.");
  return text;
}

const COLUMNS: readonly (readonly [string, (totals: UsageTotals) => string | number])[] = [
  ["SANDBOX H", ({ sandbox_seconds }) => hours(sandbox_seconds)],
  ["VCPU H", ({ vcpu_seconds }) => hours(vcpu_seconds)],
  ["GIB H", ({ memory_mib_seconds }) => hours(memory_mib_seconds / 1024)],
  ["COMMANDS", ({ exec_count }) => exec_count],
  ["MESSAGES", ({ messages }) => messages],
  ["EGRESS", ({ egress_bytes }) => bytesText(egress_bytes)],
  ["DRIVE GIB H", ({ drive_byte_hours }) => (drive_byte_hours / 1024 ** 3).toFixed(3)],
  ["BUILD H", ({ build_seconds }) => hours(build_seconds)],
];

const hours = (seconds: number) => (seconds / 3600).toFixed(3);

function wholeLines({ groups: _, others: __, ...report }: UsageReport): string[] {
  return fieldLines(report);
}

function groupLines({ groups = [], others, totals }: UsageReport, groupBy: Grouping): string[] {
  const row = (name: string, id: string, each: UsageTotals) => [name, id, ...COLUMNS.map(([, cell]) => cell(each))];
  return table(
    [groupBy.toUpperCase(), "ID", ...COLUMNS.map(([header]) => header)],
    [
      ...groups.map(({ id, name, totals: each }) => row(name ?? "", id === name ? "" : (id ?? ""), each)),
      ...(others ? [row(`${others.group_count} others`, "", others.totals)] : []),
      row("total", "", totals),
    ],
  );
}
