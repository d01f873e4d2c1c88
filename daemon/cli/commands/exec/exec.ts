/** `roomd exec`: one command in a sandbox, with its own streams and its own exit status. */
import { constants } from "node:os";
import type { Command } from "commander";
import type { CommandEnd } from "../../../../sdk/typescript/src/execution.ts";
import type { InputOf } from "../../../../shared/api/contract.ts";
import {
  DEFAULT_TIMEOUT_MS,
  executionEnd,
  executionSignal,
  executionStart,
  sandboxExec,
} from "../../../../shared/api/executions.ts";
import { newId } from "../../../../shared/ids.ts";
import { quoted } from "../../../../shared/shell.ts";
import { CliError, EXIT } from "../../kit/cli-error.ts";
import { call } from "../../kit/client.ts";
import { command, timeout } from "../../kit/command.ts";
import { type JsonOption, say, show } from "../../kit/output.ts";
import { withProgress } from "../../kit/progress.ts";
import { stdinBytes } from "../../kit/standard-input.ts";
import { integer, pair } from "../../kit/values.ts";
import { openShell } from "../shell/shell.ts";
import { type EndWithUs, endWithUs } from "./exec-end.ts";
import { type ExecutionName, followOutput } from "./exec-follow.ts";
import { isPiped, passOnStdin } from "./exec-stdin.ts";

interface ExecOptions extends JsonOption {
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  timeout?: number;
  maxOutput?: number;
  outputTo?: string;
  execId?: string;
  background?: boolean;
  interactive?: boolean;
  tty?: boolean;
  stdin: boolean;
}

/** Its name makes a retry safe when no answer arrived. */
export const BEGIN = { retry: { after: "any", forMs: 1500 } } as const;

export function execCommand(setStatus: (status: number) => void): Command {
  return command("exec <room> <agent> <command...>", {
    summary: "run a command in a sandbox",
    notes: [
      "Output is printed as it arrives. Standard input is passed on when it is a file or a pipe. Ctrl-c sends the command SIGINT;",
      "a second ctrl-c leaves it running. SIGTERM, SIGHUP and an output without a reader end the command. After a lost connection the",
      "output continues at the same position. A `--` before the command may be left out: options end at its first word.",
      "",
      "Exit status: the command's own; 124 when it timed out; 128+n when signal n ended it;",
      "125 when roomd could not run it; 127 when the command was not found; 126 when it could not be executed.",
      "With --json the output is printed when the command has ended, at most --max-output of each stream.",
    ],
    examples: [
      "roomd exec build-42 worker-1 -- uname -a",
      "roomd exec build-42 worker-1 --cwd /mnt/drive --env CI=1 --timeout 10m -- make test",
      "echo 'print(6 * 7)' | roomd exec build-42 worker-1 -- python3 -",
      "roomd exec build-42 worker-1 -- sh -c 'ls | wc -l'",
      "roomd exec --tty build-42 worker-1 bash",
      "roomd exec build-42 worker-1 --background --timeout 1h -- make",
    ],
  })
    .option("--cwd <dir>", "working directory in the sandbox")
    .option("-e, --env <key=value>", "environment variable of the command; repeatable", pair)
    .option("--user <user>", "user name or id (default: root)")
    .addOption(
      timeout("end the command after this time, at most 7d; 0: never (default: 10m, with --background: never)"),
    )
    .option("--max-output <bytes>", "with --json: most bytes of each stream (default: 1 MiB)", integer(1))
    .option("--output-to <dir>", "also save the full output in this directory of the drive")
    .option("--exec-id <id>", "your own name for this run; the same name never runs twice")
    .option("--background", "leave it running and print its exec_id; see `roomd execution`")
    .option("--no-stdin", "do not read standard input")
    .option("-i, --interactive", "pass standard input on (automatic for a file or a pipe)")
    .option("-t, --tty", "run it in a terminal, as `roomd shell` does")
    .action(async (room_id: string, sandbox: string, argv: string[], options: ExecOptions) => {
      if (options.tty) return setStatus(await openShell(room_id, sandbox, argv, shellOptions(options)));
      const { cwd, env, user, maxOutput, outputTo: output_to, background, json } = options;
      const timeout_ms = options.timeout ?? (background ? 0 : DEFAULT_TIMEOUT_MS);
      const limits = { timeout_ms, max_output_bytes: maxOutput };
      const request = { room_id, sandbox, argv, cwd, env, user, ...limits, output_to };
      const name = { room_id, sandbox, exec_id: options.execId ?? newId("exe") };
      const piped = options.stdin && !background && isPiped();
      if (json && !background) return await runAsJson(request, name, piped, setStatus);
      const starting = Promise.withResolvers<void>();
      // Installed before the start: a signal may arrive as soon as the command runs.
      using ending = background ? null : endWithUs(() => starting.promise.then(() => call(executionEnd, name)));
      const started = await withProgress(`starting ${argv[0]}`, () =>
        call(executionStart, { ...request, ...name, stdin_open: piped }, BEGIN),
      ).finally(() => {
        starting.resolve();
        return ending?.unlessBegun();
      });
      if (background) return await show(started, { json }, ({ exec_id }) => [exec_id]);
      const ended = await follow(name, {
        after: -1,
        about: `running ${argv[0]}`,
        piped,
        ending,
      });
      if (ended?.timed_out) await say(`roomd: timed out after ${ended.duration_ms} ms, see --timeout`);
      else if (ended?.oom) await say(`roomd: ${outOfMemory(ended)}`);
      const hint = hintOf(ended, argv, `roomd exec ${room_id} ${sandbox} --`);
      if (hint) await say(hint);
      if (process.stdin.isTTY && options.stdin && argv.length === 1 && READS_TERMINAL.test(argv[0] ?? ""))
        await say(`roomd: a terminal's input is not passed on; roomd shell ${room_id} ${sandbox} -- ${argv[0]}`);
      setStatus(statusOf(ended));
    });
}

interface Follow {
  after: number;
  about: string;
  piped: boolean;
  /** Ends the command if this process is ended; null if the caller does that, or the command is left running. */
  ending: EndWithUs | null;
}

/** Programs that do nothing without input on standard input. */
const READS_TERMINAL = /(?:^|\/)(?:ba|da|z|fi)?sh$|(?:^|\/)(?:python3?|node|psql|sqlite3)$/;

/** The hint if a whole command line was passed as one word; null for any other failure. */
export function hintOf(ended: CommandEnd | null, argv: readonly string[], before: string): string | null {
  const [line = ""] = argv;
  if (ended?.exit_code !== 127 || argv.length > 1 || !/\s/.test(line.trim())) return null;
  return `roomd: that is one word, which names a program; for a line of shell: ${before} sh -c ${quoted(line)}`;
}

function shellOptions({ cwd, user, env, json, background }: ExecOptions): { cwd?: string; user?: string } {
  if (env !== undefined || json || background) throw new CliError("--tty goes with --cwd and --user only.", EXIT.usage);
  return { ...(cwd === undefined ? {} : { cwd }), ...(user === undefined ? {} : { user }) };
}

/**
 * Follows the execution as if it ran locally: forwards standard input and the first ctrl-c; a second ctrl-c detaches. Resolves to null if
 * the command was left running.
 */
export async function follow(name: ExecutionName, { after, about, piped, ending }: Follow): Promise<CommandEnd | null> {
  const over = new AbortController();
  let interrupts = 0;
  const interrupt = () => {
    interrupts++;
    if (interrupts > 1) return over.abort();
    call(executionSignal, { ...name, signal: "SIGINT" }).catch(() => {});
  };
  process.on("SIGINT", interrupt);
  const followed = followOutput(name, { after, follow: true, about, signal: over.signal });
  const fed = piped ? passOnStdin(name, over.signal) : Promise.resolve();
  try {
    const failed = fed.then(() => new Promise<never>(() => {}));
    const ended = await Promise.race([followed, failed]);
    // The service reports a command that this process ends as ended by SIGTERM before it answers the call that ends it.
    await ending?.unlessBegun();
    if (ended === null) {
      await say(`roomd: left running; roomd execution attach ${name.room_id} ${name.sandbox} ${name.exec_id}`);
    }
    return ended;
  } catch (error) {
    await ending?.unlessBegun();
    throw error;
  } finally {
    over.abort();
    process.off("SIGINT", interrupt);
  }
}

async function runAsJson(
  request: object,
  name: ExecutionName,
  piped: boolean,
  setStatus: (status: number) => void,
): Promise<void> {
  const stdin = piped ? await stdinBytes() : null;
  const input = { ...request, ...name, ...(stdin?.byteLength ? { stdin_b64: stdin.toString("base64") } : {}) };
  using ending = endWithUs(() => call(executionEnd, name));
  const reply = await withProgress("running", () => call(sandboxExec, input as InputOf<typeof sandboxExec>)).finally(
    () => ending.unlessBegun(),
  );
  await show(reply, { json: true }, () => []);
  setStatus(statusOf(reply.value));
}

/** Sentence about an out-of-memory kill of the command itself or of one of its child processes. */
export function outOfMemory({ signal }: Pick<CommandEnd, "signal">): string {
  return signal === "SIGKILL"
    ? "ended by SIGKILL: the sandbox ran out of memory"
    : "a process of the command was ended by SIGKILL: the sandbox ran out of memory";
}

/** The exit status for this result; that of an interrupted program if the command was left running. */
export function statusOf(ended: Pick<CommandEnd, "timed_out" | "exit_code" | "signal"> | null): number {
  if (ended === null) return EXIT.signal + constants.signals.SIGINT;
  const { timed_out, exit_code, signal } = ended;
  if (timed_out) return EXIT.timeout;
  if (exit_code !== null) return exit_code;
  const number = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return number === undefined ? EXIT.roomd : EXIT.signal + number;
}
