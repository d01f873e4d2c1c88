/** `roomd egress why`: whether sandboxes may connect to a host, and the setting that decides it. */
import type { Command } from "commander";
import type { OutputOf } from "../../../../shared/api/contract.ts";
import { egressExplain } from "../../../../shared/api/egress.ts";
import { orgSandboxList, sandboxList } from "../../../../shared/api/sandboxes.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { allItems } from "../../kit/list-options.ts";
import { type JsonOption, showValue, table } from "../../kit/output.ts";

type Explained = OutputOf<typeof egressExplain> & { room_id: string; agent_id: string };

const FORM = "Write [ROOM[/AGENT]] HOST[:PORT], for example build-42/worker-1 example.org:443.";

export function whyCommand(setStatus: (status: number) => void): Command {
  return command("why", {
    summary: "find out whether sandboxes may connect to a host, and which setting allows it",
    notes: [
      "ROOM is a room with all its sandboxes; without it, those of all rooms. HOST is a name, an address or a CIDR.",
      "The exit status is 0 if all of them may, 1 otherwise.",
    ],
    examples: [
      "roomd egress why build-42/worker-1 example.org:443",
      "roomd egress why build-42 10.1.2.0/24",
      "roomd egress why registry.corp.example:5000 --json",
    ],
  })
    .usage("[options] [ROOM[/AGENT]] HOST[:PORT]")
    .argument("<where...>", "[ROOM[/AGENT]] HOST[:PORT]")
    .action(async (words: string[], options: JsonOption) => {
      const { room_id, agent, host, port } = readWords(words);
      const explained: Explained[] = [];
      // Sequential: a room has up to hundreds of sandboxes.
      for (const sandbox of await sandboxesOf(room_id, agent)) {
        const { value } = await call(egressExplain, {
          room_id: sandbox.room_id,
          sandbox: sandbox.agent_id,
          host,
          port,
        });
        explained.push({ ...sandbox, ...value });
      }
      const [only] = explained;
      if (!only)
        throw new CliError({ detail: "There is no sandbox.", errors: [], hint: "`roomd run --keep` makes one." });
      if (agent === null) await showValue({ items: explained }, options, ({ items }) => linesOf(items));
      else await showValue(only, options, ({ detail, hint }) => [detail, ...(hint ? [hint] : [])]);
      setStatus(explained.every(({ verdict }) => verdict === "allowed") ? EXIT.ok : EXIT.refused);
    });
}

function linesOf(items: readonly Explained[]): string[] {
  const rows = items.map(({ room_id, agent_id, verdict, detail }) => [`${room_id}/${agent_id}`, verdict, detail]);
  const hints = new Set(items.flatMap(({ hint }) => hint ?? []));
  return [...table(["SANDBOX", "VERDICT", "WHY"], rows), ...hints];
}

/** The named sandbox, or all sandboxes that have not ended, of one room or of all rooms. */
async function sandboxesOf(room_id: string | undefined, agent: string | null) {
  if (room_id !== undefined && agent !== null) return [{ room_id, agent_id: agent }];
  const items =
    room_id === undefined
      ? await allItems((cursor) => call(orgSandboxList, { cursor }))
      : await allItems((cursor) => call(sandboxList, { room_id, cursor }));
  return items
    .filter(({ state }) => state !== "destroying" && state !== "destroyed")
    .map((each) => ({ room_id: each.room_id, agent_id: each.agent_id }));
}

/** Also accepts the three words ROOM AGENT HOST, as in the other egress commands. */
function readWords(words: readonly string[]) {
  const place = words.slice(0, -1).flatMap((word) => word.split("/"));
  const [, host, port] = /^\[?(.+?)\]?(?::(\d{1,5}))?$/.exec(hostOf(words.at(-1) ?? "")) ?? [];
  const isRoom = host?.includes("/") && !/^[\d.:a-f]+\/\d{1,3}$/i.test(host);
  if (isRoom || place.length > 2 || place.includes("") || host === undefined) throw new CliError(FORM, EXIT.usage);
  const [room_id, agent = null] = place;
  return { room_id, agent, host, port: port === undefined ? undefined : Number(port) };
}

/** Adds brackets to an IPv6 address without a port. */
const hostOf = (text: string): string => (/^[^[\]]*:[^[\]]*:[^[\]]*$/.test(text) ? `[${text}]` : text);
