/** Owns an answer's bytes as they are written to a file of the caller's: one that did not come whole is never left. */
import { closeSync, openSync, renameSync, rmSync, writeSync } from "node:fs";
import type { Download } from "../../sdk/typescript/src/client.ts";
import { errnoOf } from "../core/service-error.ts";
import { CliError } from "./cli-error.ts";
import { bytesText } from "./output.ts";

/** Writes beside the target and renames at the end; returns how many bytes. `told` hears how many there are so far. */
export async function saveAnswer(answer: Download, file: string, told = (_bytes: number) => {}): Promise<number> {
  const draft = `${file}.${process.pid}.part`;
  let size = 0;
  try {
    const fd = openSync(draft, "wx");
    try {
      for await (const chunk of whole(answer)) {
        for (let at = 0; at < chunk.byteLength; ) at += writeSync(fd, chunk, at);
        size += chunk.byteLength;
        told(size);
      }
    } finally {
      closeSync(fd);
    }
    renameSync(draft, file);
    return size;
  } catch (error) {
    rmSync(draft, { force: true });
    if (error instanceof CliError) throw error;
    throw new CliError(`${file} cannot be written: ${errnoOf(error) ?? String(error)}.`);
  }
}

/** The bytes of an answer. Throws CliError when it breaks off. */
export async function* whole({ stream, size: announced }: Download): AsyncGenerator<Uint8Array> {
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
