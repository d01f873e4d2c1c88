/** Owns passing on what is piped in: in parts, each with its place, so that a part that is sent twice arrives once. */
import { fstatSync } from "node:fs";
import { executionStdin } from "../../shared/api/executions.ts";
import { CliError } from "./cli-error.ts";
import { call } from "./client.ts";
import { type ExecutionName, mayComeBack } from "./exec-follow.ts";

const PART_BYTES = 1024 * 1024;
const PAUSE_MS = 500;

/** Whether standard input is a file or a pipe, and no terminal, device or closed. */
export function isPiped(): boolean {
  try {
    const stat = fstatSync(0);
    return stat.isFIFO() || stat.isFile() || stat.isSocket();
  } catch {
    return false;
  }
}

/** To its end, or until the command wants no more of it. */
export async function passOnStdin(name: ExecutionName, over: AbortSignal): Promise<void> {
  let offset = 0;
  for await (const chunk of Bun.stdin.stream()) {
    for (let at = 0; at < chunk.byteLength; at += PART_BYTES) {
      const part = chunk.subarray(at, at + PART_BYTES);
      if (!(await sendPart(name, { data_b64: part.toBase64(), offset, eof: false }, over))) return;
      offset += part.byteLength;
    }
  }
  await sendPart(name, { offset, eof: true }, over);
}

async function sendPart(
  name: ExecutionName,
  part: { data_b64?: string; offset: number; eof: boolean },
  over: AbortSignal,
): Promise<boolean> {
  while (!over.aborted) {
    try {
      await call(executionStdin, { ...name, ...part });
      return true;
    } catch (error) {
      // It has ended, or reads no more: as a broken pipe, but without the noise.
      if (error instanceof CliError && error.complaint.code === "invalid_state") return false;
      if (!mayComeBack(error)) throw error;
    }
    await Bun.sleep(PAUSE_MS);
  }
  return false;
}
