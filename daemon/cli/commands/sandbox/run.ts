/** `roomd run`: one command in a temporary sandbox, which is removed afterwards. */
import { constants } from "node:os";
import type { Command } from "commander";
import { DEFAULT_TIMEOUT_MS, executionStart } from "../../../../shared/api/executions.ts";
import { roomCreate, roomDestroy } from "../../../../shared/api/rooms.ts";
import { sandboxCreate } from "../../../../shared/api/sandboxes.ts";
import { newId } from "../../../../shared/ids.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, timeout } from "../../kit/command.ts";
import { say } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { mebibytes, pair, word } from "../../kit/values.ts";
import { BEGIN, follow, hintOf, outOfMemory, statusOf } from "../exec/exec.ts";
import { type EndWithUs, endWithUs } from "../exec/exec-end.ts";
import { isPiped } from "../exec/exec-stdin.ts";

interface RunOptions {
  room?: string;
  keep?: boolean;
  template?: string;
  memory?: number;
  egress?: string[] | false;
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  timeout?: number;
  stdin: boolean;
}

const AGENT = "main";
/** Lifetime of the room if this process is killed before it deletes the room. */
const ROOM_SECONDS = 86_400;
const IDLE_SECONDS = 900;

export function runCommand(setStatus: (status: number) => void): Command {
  return command("run <command...>", {
    summary: "run a command in a new sandbox, which is destroyed afterwards",
    notes: [
      "The sandbox is agent main of a room of its own. Both end with the command, on ctrl-c and on failure too, unless --keep or --room is",
      "given. The exit status is that of `roomd exec`. A `--` before the command may be left out.",
    ],
    examples: [
      "roomd run -- python3 -c 'print(6 * 7)'",
      "roomd run --template python --timeout 5m -- pytest",
      "roomd run --keep -- sh -c 'apt list --installed | wc -l'",
      "roomd run --room build-42 -- make test",
    ],
  })
    .option("--room <room>", "use agent main of this room, which is created if needed and stays")
    .option("--keep", "leave the room and its sandbox, and print how to reach it")
    .option("--template <id>", "template to start from (default: default)")
    .option("--memory <mib>", "memory in MiB (default: the template's)", mebibytes(0))
    .option("--egress <entry>", "allow only this host, address or network; repeatable", word)
    .option("--no-egress", "allow no connection to the outside")
    .option("--cwd <dir>", "working directory in the sandbox")
    .option("-e, --env <key=value>", "environment variable of the command; repeatable", pair)
    .option("--user <user>", "user name or id (default: root)")
    .addOption(timeout("end the command after this time, at most 7d; 0: never (default: 10m)"))
    .option("--no-stdin", "do not read standard input")
    .action(async (argv: string[], options: RunOptions) => {
      const isOwn = options.room === undefined;
      const room_id = options.room ?? `run-${newId("exe").slice(-12).toLowerCase()}`;
      const remove = async () => {
        if (isOwn && !options.keep) await call(roomDestroy, { room_id, drive: "delete" });
      };
      using ending = endWithUs(remove);
      try {
        await makeSandbox(room_id, options, ending);
        const status = await runIn(room_id, argv, options);
        await ending.unlessBegun();
        setStatus(status);
      } catch (error) {
        await ending.unlessBegun();
        throw error;
      } finally {
        if (!ending.hasBegun) await withProgress(`removing room ${room_id}`, () => remove()).catch(ignoreMissing);
      }
      if (isOwn && options.keep) await say(`roomd: kept; roomd shell ${room_id} ${AGENT}, and roomd rm -r ${room_id}`);
    });
}

/** Creates the room and the sandbox. Ctrl-c cleans up as any other failure does. */
async function makeSandbox(room_id: string, options: RunOptions, ending: EndWithUs): Promise<void> {
  const { room, template: template_id, memory: memory_mib, egress } = options;
  const interrupted = () => void ending.end(EXIT.signal + constants.signals.SIGINT);
  process.on("SIGINT", interrupted);
  try {
    const create = { room_id, ...(room === undefined ? { ttl_seconds: ROOM_SECONDS } : {}) };
    await call(roomCreate, create).catch(ifNew(room, "room_id_in_use"));
    const lifecycle = { on_idle: "hibernate", idle_after_seconds: IDLE_SECONDS } as const;
    const request = { template_id, memory_mib, egress_allowlist: egress === false ? [] : egress, lifecycle };
    await withProgress("creating a sandbox", () => call(sandboxCreate, { room_id, agent_id: AGENT, ...request })).catch(
      ifNew(room, "agent_id_in_use"),
    );
  } finally {
    process.off("SIGINT", interrupted);
  }
}

/** Ignores the conflict error `code` if the user named the room: an existing room or sandbox is used unchanged. */
const ifNew = (room: string | undefined, code: string) => (error: unknown) => {
  const isThere = error instanceof CliError && error.complaint.code === code;
  if (room === undefined || !isThere) throw error;
};

const ignoreMissing = (error: unknown) => {
  if (!(error instanceof CliError && error.complaint.code === "room_not_found")) throw error;
};

async function runIn(room_id: string, argv: string[], options: RunOptions): Promise<number> {
  const { cwd, env, user, timeout: timeout_ms = DEFAULT_TIMEOUT_MS } = options;
  const name = { room_id, sandbox: AGENT, exec_id: newId("exe") };
  const piped = options.stdin && isPiped();
  const request = { ...name, argv, cwd, env, user, timeout_ms, stdin_open: piped };
  await withProgress(`starting ${argv[0]}`, () => call(executionStart, request, BEGIN));
  const ended = await follow(name, { after: -1, about: `running ${argv[0]}`, piped, ending: null });
  if (ended?.timed_out) await say(`roomd: timed out after ${ended.duration_ms} ms, see --timeout`);
  else if (ended?.oom) await say(`roomd: ${outOfMemory(ended)}`);
  const hint = hintOf(ended, argv, "roomd run --");
  if (hint) await say(hint);
  return statusOf(ended);
}
