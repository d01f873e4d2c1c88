/** `roomd code`: opens a local editor that works in a sandbox over SSH. */
import type { Command } from "commander";
import { type SandboxRecord, sandboxGet, sandboxResume } from "../../../../shared/api/sandboxes.ts";
import { sshKeyList } from "../../../../shared/api/ssh.ts";
import { commandText } from "../../../../shared/shell.ts";
import { hasProgram, startForUser } from "../../../host/background.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { choice, command } from "../../kit/command.ts";
import { type JsonOption, say, showValue } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { installEntries } from "../account/ssh/config-files.ts";
import { type Gateway, hostOf } from "../account/ssh/host-entry.ts";
import { sandboxWords } from "../account/ssh/sandbox-argument.ts";
import { findGateway } from "../account/ssh-config.ts";

const EDITORS = ["code", "cursor", "codium", "zed"] as const;
type Editor = (typeof EDITORS)[number];
const WITH = [...EDITORS, "idea", "print"] as const;

/** Requirements of the editors' servers. */
const EDITOR_MEMORY_MIB = 1024;
const IDEA_MEMORY_MIB = 4096;
const RESTING = new Set(["paused", "hibernated"]);
/** Hosts from which the server of Visual Studio Code is downloaded. */
const SERVER_HOSTS = ["update.code.visualstudio.com", "vscode.download.prss.microsoft.com"];

interface Options extends JsonOption {
  with?: (typeof WITH)[number] | undefined;
}

export function codeCommand(): Command {
  return command("code <sandbox> [words...]", {
    summary: "open a directory of a sandbox in an editor of this machine, by SSH",
    notes: [
      "The sandbox is ROOM AGENT or ROOM/AGENT, and a PATH may follow. Its entry is written as `roomd ssh-config --install` does, it is",
      "resumed if it sleeps, and the first editor found is opened: code, cursor, codium or zed. Without one the command is printed.",
    ],
    examples: [
      "roomd code build-42 worker-1 /root/src",
      "roomd code build-42/worker-1 --with cursor",
      "roomd code build-42/worker-1 --with print",
    ],
  })
    .addOption(
      choice("--with <editor>", "this editor; idea: print the fields of JetBrains Gateway; print: print only", WITH),
    )
    .action(async (first: string, others: string[], { json, with: editorChoice }: Options) => {
      const { room_id, agent, rest } = sandboxWords([first, ...others]);
      if (agent === undefined || rest.length > 1) {
        throw new CliError("It is `roomd code ROOM AGENT [PATH]`, or ROOM/AGENT in place of both.", EXIT.usage);
      }
      const [path = null] = rest;
      if (path !== null && !/^\/\P{Cc}*$/u.test(path))
        throw new CliError(`${path}: must be an absolute path.`, EXIT.usage);
      const gateway = await findGateway();
      const sandbox = await awake(room_id, agent);
      installEntries([sandbox], gateway);
      for (const line of [...lacking(sandbox, editorChoice), ...(await keyLines())]) await say(`roomd: ${line}`);
      if (editorChoice === "idea") return await printGateway(sandbox, gateway, path, { json });
      await open(sandbox, path, { json, with: editorChoice });
    });
}

async function open(sandbox: SandboxRecord, path: string | null, { json, with: editorChoice }: Options): Promise<void> {
  const host = hostOf(sandbox);
  const editor =
    editorChoice === "print" || editorChoice === "idea" ? undefined : (editorChoice ?? EDITORS.find(hasProgram));
  const argv = argvOf(editor ?? "code", host, path);
  const isOpened = editor !== undefined && startForUser(argv);
  const text = commandText(argv);
  await showValue({ host, argv, opened: isOpened }, { json }, () => [isOpened ? `opened by: ${text}` : text]);
  if (isOpened || editorChoice === "print" || json) return;
  const missing = editor === undefined ? "no known editor is in PATH" : `${editor} is not in PATH`;
  await say(`roomd: ${missing}: run the command above on a computer that has one, or choose another by --with.`);
}

function argvOf(editor: Editor, host: string, path: string | null): string[] {
  if (editor === "zed") return ["zed", `ssh://${host}${encodeURI(path ?? "/")}`];
  return [editor, "--remote", `ssh-remote+${host}`, ...(path === null ? [] : [path])];
}

/** JetBrains Gateway has no command line: prints the values for its connection form. */
async function printGateway(sandbox: SandboxRecord, gateway: Gateway, path: string | null, options: JsonOption) {
  const form = {
    host: gateway.host,
    port: gateway.port,
    username: `${sandbox.agent_id}@${sandbox.room_id}`,
    directory: path ?? "/root",
  };
  await showValue(form, options, () => Object.entries(form).map(([name, value]) => `${name.padEnd(9)}  ${value}`));
}

async function awake(room_id: string, sandbox: string): Promise<SandboxRecord> {
  const { value } = await call(sandboxGet, { room_id, sandbox });
  if (!RESTING.has(value.state)) return value;
  const { value: resumed } = await withProgress(`resuming sandbox ${sandbox}`, () =>
    call(sandboxResume, { room_id, sandbox }),
  );
  return { ...value, state: resumed.state };
}

/** Requirements of the editor that the sandbox does not meet, each with its remedy. */
function lacking({ memory_mib, egress }: SandboxRecord, editorChoice: Options["with"]): string[] {
  const needs = editorChoice === "idea" ? IDEA_MEMORY_MIB : EDITOR_MEMORY_MIB;
  const isOffline =
    egress.mode === "none" ||
    (egress.mode === "allowlist" && !SERVER_HOSTS.every((host) => egress.allowlist.includes(`${host}:443`)));
  return [
    ...(memory_mib < needs
      ? [`the sandbox has ${memory_mib} MiB of memory; editors need ${needs} MiB: create it with --memory ${needs * 2}`]
      : []),
    ...(isOffline && editorChoice !== "zed"
      ? [`its egress does not allow ${SERVER_HOSTS.join(" and ")}: set "remote.SSH.localServerDownload": "always"`]
      : []),
  ];
}

/** A warning if no public key is registered; empty if the caller may not list keys. */
async function keyLines(): Promise<string[]> {
  try {
    const { value } = await call(sshKeyList, { org_id: "self" });
    return value.items.length > 0 ? [] : ["no public key is registered: roomd ssh-key add ~/.ssh/id_ed25519.pub"];
  } catch (error) {
    if (error instanceof CliError && error.complaint.status === 403) return [];
    throw error;
  }
}
