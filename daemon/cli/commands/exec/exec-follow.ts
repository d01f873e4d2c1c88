/** An execution's output on this terminal, written as it arrives, with a note on missing parts. */
import { type CommandEnd, Execution, type OutputPart } from "../../../../sdk/typescript/src/execution.ts";
import { executionStream } from "../../../../shared/api/executions.ts";
import { errnoOf } from "../../../core/service-error.ts";
import { lost } from "../../kit/cli-error.ts";
import { sdk } from "../../kit/client.ts";
import { outputBroke, say, write } from "../../kit/output.ts";
import { type Progress, withProgress } from "../../kit/progress.ts";

const NEWLINE = 0x0a;

/** An execution by its names. */
export interface ExecutionName {
  room_id: string;
  sandbox: string;
  exec_id: string;
}

interface Following {
  /** Sequence number of the last event already received. */
  after: number;
  /** True: follow to the end. False: write the output so far. */
  follow: boolean;
  /** Progress text while there is no output. */
  about: string;
  /** Gives it up. */
  signal?: AbortSignal;
}

/** Writes all output after this event; resolves with the command's result, or null if it has not ended or was aborted. */
export function followOutput(name: ExecutionName, following: Following): Promise<CommandEnd | null> {
  return withProgress(following.about, (progress) => writeOutput(name, following, progress));
}

async function writeOutput(name: ExecutionName, { after, follow, signal }: Following, progress: Progress) {
  const tell = async (text: string) => {
    progress.giveWay();
    await say(text);
  };
  const execution = new Execution(sdk(executionStream), name, name.exec_id);
  const options = {
    after,
    retry: { after: "any" } as const,
    ...(signal ? { signal } : {}),
    onCut: () => tell("roomd: the connection was lost, reconnecting"),
    onGap: () => tell("roomd: output that is no longer kept is left out"),
  };
  const output = follow ? execution.output(options) : execution.outputSoFar(options);
  let last = after;
  try {
    for (;;) {
      const next = await output.next();
      if (next.done) return next.value;
      last = next.value.seq;
      await show(next.value, progress);
    }
  } catch (error) {
    if (signal?.aborted) return null;
    const again = `roomd execution attach ${name.room_id} ${name.sandbox} ${name.exec_id} --after ${last}`;
    throw lost(error, `The command keeps running: ${again}`);
  } finally {
    await output.return(null as never);
  }
}

async function show({ stream, bytes }: OutputPart, progress: Progress): Promise<void> {
  const to = process[stream];
  // Progress is not drawn on a line that the command has not finished.
  if (to.isTTY) progress.giveWay(bytes.at(-1) === NEWLINE);
  await write(to, bytes).catch(withoutReader);
}

/** Calls the handler of a broken output, which ends this process; then never resolves. Throws other errors. */
function withoutReader(error: unknown): Promise<void> {
  if (errnoOf(error) !== "EPIPE") throw error;
  outputBroke();
  return new Promise(() => {});
}
