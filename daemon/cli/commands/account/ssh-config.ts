/** `roomd ssh-config`: entries with which ssh, scp, rsync and editors resolve sandboxes by a name. */
import type { Command } from "commander";
import { orgSandboxList, type SandboxState, sandboxGet, sandboxList } from "../../../../shared/api/sandboxes.ts";
import { configGet } from "../../../../shared/api/service.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command } from "../../kit/command.ts";
import { allItems } from "../../kit/list-options.ts";
import { counted, type JsonOption, showValue } from "../../kit/output.ts";
import { installEntries, removeEntries, sshFiles } from "./ssh/config-files.ts";
import { checkedGateway, entryLines, type Gateway, hostOf, type SshTarget } from "./ssh/host-entry.ts";
import { sandboxWords } from "./ssh/sandbox-argument.ts";

interface Options extends JsonOption {
  install?: true;
  remove?: true;
}

export function sshConfigCommand(): Command {
  return command("ssh-config [room] [agent]", {
    summary: "print entries for ~/.ssh/config, by which ssh and editors reach sandboxes by a name",
    notes: [
      "Names a sandbox, all of a room, or all of the organization. ROOM/AGENT is one too. The host is AGENT.ROOM.roomd.",
      "--install writes the entries to ~/.ssh/roomd.config and pins the gateway's key in ~/.ssh/roomd.known_hosts; ~/.ssh/config gets one",
      "line that includes them. Log in with a key that `roomd ssh-key add` has registered.",
    ],
    examples: [
      "roomd ssh-config build-42 worker-1",
      "roomd ssh-config build-42 --install && ssh worker-1.build-42.roomd",
      "roomd ssh-config --remove",
    ],
  })
    .option("--install", "write the entries to the SSH configuration of this user")
    .option("--remove", "remove entries that --install has written: all, or those of ROOM or AGENT")
    .action(async (room: string | undefined, agent: string | undefined, { json, ...options }: Options) => {
      if (options.install && options.remove) throw new CliError("Give --install or --remove, not both.", EXIT.usage);
      const words = [room, agent].filter((word) => word !== undefined);
      const named = words.length === 0 ? null : onlySandbox(words);
      if (options.remove) return await remove(named, { json });
      const gateway = await findGateway();
      const targets = await targetsOf(named);
      if (options.install) return await install(targets, gateway, { json });
      const items = targets.map((target) => ({ host: hostOf(target), lines: entryLines(target, gateway, null) }));
      const value = { address: `${gateway.host}:${gateway.port}`, fingerprint: gateway.fingerprint, items };
      await showValue(value, { json }, () => [
        `# The key of the gateway: ${gateway.fingerprint}`,
        ...items.flatMap(({ lines }) => lines),
      ]);
    });
}

type SandboxWords = ReturnType<typeof sandboxWords>;

function onlySandbox(words: readonly string[]): SandboxWords {
  const named = sandboxWords(words);
  if (named.rest.length === 0) return named;
  throw new CliError("Name one sandbox: ROOM AGENT or ROOM/AGENT.", EXIT.usage);
}

/** The service's SSH gateway. Throws CliError if the service has none. */
export async function findGateway(): Promise<Gateway> {
  return checkedGateway((await call(configGet, {})).value.ssh);
}

/** Sandboxes that accept a login: running or asleep. Throws CliError if none exist, or if two share a host name. */
async function targetsOf(named: SandboxWords | null): Promise<SshTarget[]> {
  const found = await sandboxesOf(named);
  const targets = found.filter(({ state }) => !ENDED.has(state));
  if (targets.length === 0) throw new CliError(`There is no sandbox${named ? ` in ${named.room_id}` : ""}.`);
  const hosts = targets.map(hostOf);
  const twice = hosts.find((host, at) => hosts.indexOf(host) !== at);
  if (twice !== undefined) throw new CliError(`Two sandboxes would be ${twice}: name one by ROOM AGENT.`);
  return targets;
}

const ENDED: ReadonlySet<SandboxState> = new Set(["failed", "destroying", "destroyed"]);

async function sandboxesOf(named: SandboxWords | null) {
  if (named === null) return await allItems((cursor) => call(orgSandboxList, { cursor }));
  const { room_id, agent } = named;
  if (agent === undefined) return await allItems((cursor) => call(sandboxList, { room_id, cursor }));
  return [(await call(sandboxGet, { room_id, sandbox: agent })).value];
}

async function install(targets: readonly SshTarget[], gateway: Gateway, options: JsonOption): Promise<void> {
  installEntries(targets, gateway);
  const hosts = targets.map(hostOf);
  const { entries, config } = sshFiles();
  await showValue({ hosts, entries, config }, options, () => [
    `${counted(hosts.length, "host")} in ${entries}, which ${config} includes`,
    ...hosts.map((host) => `ssh ${host}`),
  ]);
}

async function remove(named: SandboxWords | null, options: JsonOption): Promise<void> {
  const end = named && `${named.agent ?? ""}@${named.room_id}`;
  const hosts = removeEntries((user) => end === null || (named?.agent ? user === end : user.endsWith(end)));
  await showValue({ hosts }, options, () => [`removed ${counted(hosts.length, "host")}`]);
}
