/** Writes a response's bytes to a file of the caller's; never leaves an incomplete file. */
import { closeSync, fchmodSync, openSync, realpathSync, renameSync, rmSync, statSync, writeSync } from "node:fs";
import type { Download } from "../../../sdk/typescript/src/client.ts";
import { errnoOf } from "../../core/service-error.ts";
import { CliError } from "./cli-error.ts";
import { bytesText } from "./output.ts";

type Bytes = Pick<Download, "stream" | "size">;

/**
 * Writes a temporary file in the target's directory and renames it at the end; returns the number of bytes. `told` receives the number so
 * far. A link stays, and a target that is no regular file, such as a device or a pipe, is written directly: it must not be replaced. `mode`
 * is a new file's, less the umask; a replaced file keeps its own.
 */
export async function saveAnswer(
  answer: Bytes,
  file: string,
  onProgress = (_bytes: number) => {},
  mode?: number,
): Promise<number> {
  const there = statSync(file, { throwIfNoEntry: false });
  const isReplaced = there?.isFile() !== false;
  const target = there && isReplaced ? realpathSync(file) : file;
  const draft = isReplaced ? `${target}.${process.pid}.part` : file;
  let size = 0;
  try {
    const fd = openSync(draft, isReplaced ? "wx" : "w", there?.mode ?? mode);
    try {
      if (there && isReplaced) fchmodSync(fd, there.mode);
      for await (const chunk of whole(answer)) {
        for (let at = 0; at < chunk.byteLength; ) at += writeSync(fd, chunk, at);
        size += chunk.byteLength;
        onProgress(size);
      }
    } finally {
      closeSync(fd);
    }
    if (isReplaced) renameSync(draft, target);
    return size;
  } catch (error) {
    if (isReplaced) rmSync(draft, { force: true });
    if (error instanceof CliError) throw error;
    throw new CliError(`${file} cannot be written: ${errnoOf(error) ?? String(error)}.`);
  }
}

/** The bytes of an answer. Throws CliError if the answer is truncated. */
export async function* whole({ stream, size: announced }: Bytes): AsyncGenerator<Uint8Array> {
  let size = 0;
  try {
    for await (const chunk of stream) {
      size += chunk.byteLength;
      yield chunk;
    }
  } catch (error) {
    const why = announced === null ? `: ${String(error)}` : ` of ${bytesText(announced)}`;
    throw new CliError(`The transfer broke off after ${bytesText(size)}${why}.`);
  }
}
