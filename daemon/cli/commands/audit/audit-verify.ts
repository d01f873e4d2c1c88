/** `roomd audit verify`: proof that the audit is complete, by the service or on the host itself. */
import type { Command } from "commander";
import * as audit from "../../../../shared/api/audit.ts";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { type ConfigOption, withConfigOption, withOperator } from "../../host/operator.ts";
import { EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { type JsonOption, say, show, showValue } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";

const WORK = "reading the whole audit";

interface VerifyOptions extends JsonOption, ConfigOption {
  host?: boolean;
  heads?: string[] | undefined;
}

type Verdict = OutputOf<typeof audit.orgAuditVerify>;

export function auditVerifyCommand(setStatus: (status: number) => void): Command {
  const about = {
    summary: "check the chain of hashes: no record was changed, removed or inserted; exit status 1 when it is broken",
    notes: [
      "The records of all rooms form one chain. A key that is bound to one room verifies the chain by naming that room.",
      "With --host every organization's chain is read from the service's own data, with or without a running service, and compared with",
      "the heads in audit.heads_file. --heads names a copy of that file that was kept elsewhere. Of several hosts each chain is compared with",
      "its anchors, in the database that they share.",
    ],
    examples: [
      "roomd audit verify",
      "roomd audit verify build-42",
      "roomd audit verify --host",
      "roomd audit verify --heads /mnt/backup/audit-heads.ndjson",
    ],
  };
  return withConfigOption(command("verify [room]", about))
    .option("--host", "verify every organization's chain on the host itself, not through the service")
    .option("--heads <file...>", "file with heads of the chains to compare with; implies --host")
    .action(async (room_id: string | undefined, { host, heads, config, json }: VerifyOptions) => {
      if (host || heads) return await verifyOnHost({ config, heads, json }, setStatus);
      const reply = await withProgress(WORK, () =>
        room_id === undefined ? call(audit.orgAuditVerify, { org_id: "self" }) : call(audit.auditVerify, { room_id }),
      );
      await show(reply, { json }, sentences);
      setStatus(reply.value.ok ? EXIT.ok : EXIT.refused);
    });
}

async function verifyOnHost(
  { config, heads, json }: VerifyOptions,
  setStatus: (status: number) => void,
): Promise<void> {
  const { verdicts, heads: read } = await withProgress(WORK, () =>
    withOperator({ config }, (operator) => operator.verifyAudit(heads)),
  );
  if (read.unreadable.length > 0) await say(...read.unreadable.map((line) => `${line} is not a head of a chain`));
  await showValue(verdicts, { json }, (each) =>
    each.map((verdict) => `${verdict.org_id ?? "the service itself"}: ${sentence(verdict)}`),
  );
  const warnings = new Set(verdicts.flatMap(({ warnings }) => warnings ?? []));
  if (warnings.size > 0) await say(...warnings);
  setStatus(verdicts.every(({ ok }) => ok) ? EXIT.ok : EXIT.refused);
}

/** The verdict as one sentence; for several hosts, one sentence per host. */
function sentences(verdict: Verdict): string[] {
  const { hosts = [] } = verdict;
  return hosts.length > 1 ? hosts.map((chain) => `${chain.host}: ${sentence(chain)}`) : [sentence(verdict)];
}

type Chain = Pick<Verdict, "ok" | "from_seq" | "to_seq" | "broken_at">;

function sentence({ ok, from_seq, to_seq, broken_at }: Chain): string {
  if (ok && from_seq === 0) return "there are no records";
  return ok ? `records ${from_seq} to ${to_seq} are whole` : `the chain is broken at record ${broken_at}`;
}
