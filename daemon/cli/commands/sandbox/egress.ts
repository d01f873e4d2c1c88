/** `roomd egress`: the allowlist of a running sandbox, shown and changed, and its connections. */

import type { Command } from "commander";
import { egressGet, egressSet, type SandboxNetwork, sandboxNetwork } from "../../../../shared/api/egress.ts";
import { commandGroup } from "../../kit/command.ts";
import { bytesText, counted, paint, table } from "../../kit/output.ts";
import { recordLines } from "../../kit/record-lines.ts";
import { integer } from "../../kit/values.ts";
import { verb } from "../../kit/verb.ts";
import { whyCommand } from "./egress-why.ts";

export function egressCommand(setStatus: (status: number) => void): Command {
  return commandGroup("egress", {
    summary: "allowed destinations of a sandbox",
    examples: ["roomd egress get build-42 worker-1", "roomd egress set build-42 worker-1 example.org:443"],
  })
    .addCommand(
      verb(egressGet, "get <room> <agent>", "print a sandbox's list and its traffic so far", {
        examples: ["roomd egress get build-42 worker-1"],
        lines: egressLines,
      }),
    )
    .addCommand(
      verb(
        egressSet,
        "set <room> <agent> [entries...]",
        "allow only these hosts, addresses and networks, immediately; no entries: nothing; '*': every public address",
        {
          examples: [
            "roomd egress set build-42 worker-1 example.org:443 '*.example.org' 192.0.2.0/24",
            "roomd egress set build-42 worker-1 --if-revision 2",
          ],
          options: [["--if-revision <n>", "only if the list has this revision", integer(1)]],
          fields: { entries: "allowlist" },
          lines: egressLines,
        },
      ),
    )
    .addCommand(
      verb(
        sandboxNetwork,
        "network <room> <agent>",
        "list connections and refusals of a sandbox by destination, newest first",
        {
          examples: ["roomd egress network build-42 worker-1", "roomd egress network build-42 worker-1 --json"],
          lines: networkLines,
        },
      ),
    )
    .addCommand(whyCommand(setStatus));
}

interface Policy {
  mode: "none" | "allowlist" | "public";
  allowlist: readonly string[];
}

const MODES: Record<Policy["mode"], string> = {
  none: "none (no destination)",
  allowlist: "allowlist",
  public: "public (every public address)",
};

/** The policy as text. Modes that do not use the allowlist show it only if it has entries, such as private ranges. */
export function policyFor<Shown extends Policy>({ mode, allowlist, ...others }: Shown) {
  const list = mode === "allowlist" || allowlist.length > 0 ? { allowlist } : {};
  return { mode: MODES[mode], ...list, ...others };
}

const egressLines = (egress: Policy) => recordLines(policyFor(egress));

const HEADERS = ["HOST", "IP", "PORT", "ALLOWED", "CONNECTIONS", "SENT", "RECEIVED", "LAST"];

function networkLines({ since, items, other }: SandboxNetwork): string[] {
  const rows = items.map(({ host, ip, port, allowed, reason, connections, sent_bytes, received_bytes, last_at }) => [
    ...[host, ip, port, allowed ? "yes" : `no: ${reason}`, connections],
    ...[bytesText(sent_bytes), bytesText(received_bytes), last_at],
  ]);
  const more =
    other.allowed + other.refused === 0
      ? []
      : [
          `others: ${counted(other.allowed, "connection")} allowed, ${other.refused} refused, to destinations not listed separately`,
        ];
  return [...table(HEADERS, rows), ...more, paint("dim", `since ${since}`)];
}
