/** Owns `roomd exec`: one command in a sandbox, with its own streams and its own exit status. */
import { fstatSync } from "node:fs";
import { constants } from "node:os";
import type { Command } from "commander";
import type { OutputOf } from "../../shared/api/contract.ts";
import { MAX_OUTPUT_BYTES, MAX_STDIN_BYTES, sandboxExec } from "../../shared/api/executions.ts";
import { CliError, EXIT } from "./cli-error.ts";
import { call } from "./client.ts";
import { command, type JsonOption } from "./command.ts";
import { bytesText, print, say, write } from "./output.ts";
import { withProgress } from "./progress.ts";
import { milliseconds, pair } from "./values.ts";

interface ExecOptions extends JsonOption {
  cwd?: string;
  env?: Record<string, string>;
  user?: string;
  timeout?: number;
  outputTo?: string;
  stdin: boolean;
}

type Outcome = OutputOf<typeof sandboxExec>;

export function execCommand(setStatus: (status: number) => void): Command {
  return command("exec <room> <agent> <command...>", {
    summary: "run a command in a sandbox",
    notes: [
      "Standard input is passed on when it is a file or a pipe, up to 8 MiB.",
      "",
      "Exit status: the command's own; 124 when it ran out of time; 128+n when signal n ended it;",
      "125 when roomd could not run it. A command that is not there is 127, one that cannot be run 126.",
    ],
    examples: [
      "roomd exec build-42 worker-1 -- uname -a",
      "roomd exec build-42 worker-1 --cwd /mnt/drive --env CI=1 --timeout 10m -- make test",
      "echo 'print(6 * 7)' | roomd exec build-42 worker-1 -- python3 -",
      "roomd exec build-42 worker-1 -- sh -c 'ls | wc -l'",
    ],
  })
    .option("--cwd <dir>", "working directory in the sandbox")
    .option("--env <key=value>", "variable of the command, as often as you like", pair)
    .option("--user <user>", "user name or id (default: root)")
    .option("--timeout <time>", "end it after this time, at most 1h (default: 30s)", milliseconds)
    .option("--output-to <dir>", "also save the full output in this directory of the drive")
    .option("--no-stdin", "leave standard input alone")
    .action(async (room_id: string, sandbox: string, argv: string[], options: ExecOptions) => {
      const stdin = options.stdin ? await readStdin() : null;
      const { value, text } = await withProgress(`running ${argv[0]}`, () =>
        call(sandboxExec, {
          room_id,
          sandbox,
          argv,
          cwd: options.cwd,
          env: options.env,
          user: options.user,
          stdin_b64: stdin?.toBase64(),
          timeout_ms: options.timeout,
          max_output_bytes: options.json ? undefined : MAX_OUTPUT_BYTES,
          output_to: options.outputTo,
        }),
      );
      if (options.json) await print(text.trimEnd());
      else await passOn(value);
      setStatus(statusOf(value));
    });
}

async function passOn(outcome: Outcome): Promise<void> {
  await write(process.stdout, Uint8Array.fromBase64(outcome.stdout_b64));
  await write(process.stderr, Uint8Array.fromBase64(outcome.stderr_b64));
  for (const stream of ["stdout", "stderr"] as const) {
    if (!outcome[`${stream}_truncated`]) continue;
    const total = bytesText(outcome[`${stream}_bytes`]);
    await say(`roomd: ${stream} had ${total}, its rest is not shown; --output-to saves all of it on the drive`);
  }
  if (outcome.timed_out) await say(`roomd: ended after ${outcome.duration_ms} ms, see --timeout`);
}

function statusOf({ timed_out, exit_code, signal }: Outcome): number {
  if (timed_out) return EXIT.timeout;
  if (exit_code !== null) return exit_code;
  const number = Object.entries(constants.signals).find(([name]) => name === signal)?.[1];
  return number === undefined ? EXIT.roomd : EXIT.signal + number;
}

/** What is piped in; null when standard input is a terminal, a device or closed. */
async function readStdin(): Promise<Uint8Array | null> {
  if (!isPiped()) return null;
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of Bun.stdin.stream()) {
    size += chunk.byteLength;
    if (size > MAX_STDIN_BYTES) {
      throw new CliError(
        `Standard input has over ${bytesText(MAX_STDIN_BYTES)}: put it on the drive with \`roomd drive put\`.`,
      );
    }
    chunks.push(chunk);
  }
  return size === 0 ? null : Buffer.concat(chunks);
}

function isPiped(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    return false;
  }
}
