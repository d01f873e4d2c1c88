/** `roomd usage`: the organization's usage. */
import { type Command, InvalidArgumentError } from "commander";
import { GROUPINGS, type Grouping, type UsageReport, type UsageTotals, usage } from "../../../../shared/api/usage.ts";
import { call } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { bytesText, type JsonOption, show, table } from "../../kit/output.ts";
import { durationText, recordLines } from "../../kit/record-lines.ts";

interface UsageOptions extends JsonOption {
  groupBy?: Grouping;
  month?: string;
}

export function usageCommand(): Command {
  return command("usage", {
    summary: "the organization's usage this month",
    examples: ["roomd usage", "roomd usage --group-by room", "roomd usage --group-by day --month 2026-01 --json"],
  })
    .addOption(choice("--group-by <what>", "one line for each room, agent, key or day", GROUPINGS))
    .option("--month <month>", "another month, such as 2026-01", month)
    .action(async ({ groupBy, month: requestedMonth, json }: UsageOptions) => {
      const reply = await call(usage, { org_id: "self", group_by: groupBy, month: requestedMonth });
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

/** Current allocations with their caps, then the usage of the period. */
function wholeLines(report: UsageReport): string[] {
  const { org_id, plan, entitled, period, totals, credits, can_create, as_of } = report;
  const { rooms, sandboxes, memory_mib, disk_gib, template_mib, drive, guest_cids } = report;
  const mib = (amount: number) => bytesText(amount * 1024 ** 2);
  const gib = (amount: number) => bytesText(amount * 1024 ** 3);
  const capped = (name: string, used: number, caps: Caps, text: (amount: number) => string | number = String) => [
    name,
    ...[used, caps.soft_cap, caps.hard_cap].map(text),
  ];
  const bytes = { soft_cap: drive.soft_cap_bytes, hard_cap: drive.hard_cap_bytes };
  const refused = Object.entries(can_create).flatMap(([resource, isAllowed]) => (isAllowed ? [] : [resource]));
  return [
    ...recordLines({ organization: org_id, plan: entitled ? plan : `${plan}, which allows nothing`, as_of }),
    "",
    ...table(
      ["NOW", "USED", "SOFT CAP", "HARD CAP"],
      [
        capped("rooms", rooms.active, rooms),
        capped("sandboxes", sandboxes.active, sandboxes),
        capped("memory", memory_mib.allocated, memory_mib, mib),
        capped("disks", disk_gib.allocated, disk_gib, gib),
        capped("templates", template_mib.used, template_mib, mib),
        capped("drives", drive.used_bytes, bytes, bytesText),
        ["CIDs", guest_cids.in_use, null, `${guest_cids.total} of the host`],
      ],
    ),
    ...(refused.length > 0 ? [`There can be no other ${refused.join(" or ")} now.`] : []),
    "",
    ...table(
      [period.start_at.slice(0, 7), "USED"],
      [
        ["sandbox time", durationText(totals.sandbox_seconds * 1000)],
        ["vCPU time", durationText(totals.vcpu_seconds * 1000)],
        ["memory", `${hours(totals.memory_mib_seconds / 1024)} GiB h`],
        ["drives", `${(totals.drive_byte_hours / 1024 ** 3).toFixed(3)} GiB h`],
        ["commands", totals.exec_count],
        ["messages", totals.messages],
        ["egress", bytesText(totals.egress_bytes)],
        ["builds", durationText(totals.build_seconds * 1000)],
      ],
    ),
    "",
    ...recordLines({ credits_used: credits.used, credits_remaining: credits.remaining ?? "no limit" }),
  ];
}

interface Caps {
  soft_cap: number;
  hard_cap: number;
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
