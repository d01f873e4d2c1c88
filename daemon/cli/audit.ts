/** Owns `roomd audit`: the record of a room or of the organization, and the proof that it is whole. */
import type { Command } from "commander";
import * as audit from "../../shared/api/audit.ts";
import type { OutputOf } from "../../shared/api/contract.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { call } from "./client.ts";
import { choice, command, commandGroup, type JsonOption } from "./command.ts";
import { type ConfigOption, withConfigOption, withOperator } from "./operator.ts";
import { moreLines, say, show, showValue, table } from "./output.ts";
import { asList, type ListOptions } from "./room.ts";

export function auditCommand(setStatus: (status: number) => void): Command {
  return commandGroup("audit", {
    summary: "the audit of a room or of the organization",
    examples: ["roomd audit build-42", "roomd audit --org --event sandbox.", "roomd audit verify"],
  })
    .addCommand(list(), { isDefault: true })
    .addCommand(verify(setStatus));
}

interface AuditListOptions extends ListOptions {
  org?: boolean;
  since?: string;
  until?: string;
  event?: string;
  agent?: string;
  outcome?: (typeof audit.OUTCOMES)[number];
  order?: "asc" | "desc";
}

function list(): Command {
  const about = {
    summary: "list records, the newest first (what `roomd audit` does without a word)",
    examples: [
      "roomd audit build-42",
      "roomd audit list build-42 --event exec. --agent worker-1 --limit 20",
      "roomd audit --org --since 2026-01-31T12:00:00Z --outcome denied",
    ],
  };
  return asList(command("list [room]", about))
    .option("--org", "the whole organization instead of one room")
    .option("--since <time>", "RFC 3339 or unix seconds")
    .option("--until <time>", "RFC 3339 or unix seconds")
    .option("--event <beginning>", "only events whose name begins so, such as sandbox.")
    .option("--agent <agent>", "only this agent")
    .addOption(choice("--outcome <outcome>", "only with this outcome", audit.OUTCOMES))
    .addOption(choice("--order <order>", "the newest or the oldest first (default: desc)", ["desc", "asc"]))
    .action(async (room: string | undefined, { org, agent, json, ...rest }: AuditListOptions) => {
      if ((room === undefined) === (org !== true)) throw new CliError("Name a room, or give --org.", EXIT.usage);
      const query = { agent_id: agent, ...rest };
      const reply =
        room === undefined
          ? await call(audit.orgAuditList, { org_id: "self", ...query })
          : await call(audit.auditList, { room_id: room, ...query });
      await show(reply, { json }, ({ items, next_cursor }) => [...rows(items), ...moreLines(next_cursor)]);
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

interface VerifyOptions extends JsonOption, ConfigOption {
  host?: boolean;
  heads?: string[] | undefined;
}

type Verdict = OutputOf<typeof audit.orgAuditVerify>;

function verify(setStatus: (status: number) => void): Command {
  const about = {
    summary: "check the chain of hashes: nothing was changed, taken away or put in; status 1 when it is broken",
    notes: [
      "With --host every organization's chain is read from the service's own data, which needs no running service, and compared with",
      "the heads that were written down in audit.heads_file. --heads names a copy of that file that was kept elsewhere.",
    ],
    examples: [
      "roomd audit verify",
      "roomd audit verify --host",
      "roomd audit verify --heads /mnt/backup/audit-heads.ndjson",
    ],
  };
  return withConfigOption(command("verify", about))
    .option("--host", "every organization's chain, read on the host itself instead of through the service")
    .option("--heads <file...>", "heads that the chains had; implies --host")
    .action(async ({ host, heads, config, json }: VerifyOptions) => {
      if (host || heads) return await verifyOnHost({ config, heads, json }, setStatus);
      const reply = await call(audit.orgAuditVerify, { org_id: "self" });
      await show(reply, { json }, (verdict) => [sentence(verdict)]);
      setStatus(reply.value.ok ? EXIT.ok : EXIT.refused);
    });
}

async function verifyOnHost(
  { config, heads, json }: VerifyOptions,
  setStatus: (status: number) => void,
): Promise<void> {
  const { verdicts, heads: read } = await withOperator({ config }, (operator) => operator.verifyAudit(heads));
  if (read.unreadable.length > 0) await say(...read.unreadable.map((line) => `${line} is no head of a chain`));
  await showValue(verdicts, { json }, (each) =>
    each.map((verdict) => `${verdict.org_id ?? "the service itself"}: ${sentence(verdict)}`),
  );
  setStatus(verdicts.every(({ ok }) => ok) ? EXIT.ok : EXIT.refused);
}

function sentence({ ok, from_seq, to_seq, broken_at }: Verdict): string {
  if (ok && from_seq === 0) return "there are no records";
  return ok ? `records ${from_seq} to ${to_seq} are whole` : `the chain is broken at record ${broken_at}`;
}
