/**
 * Owns writing once what is asked for twice under an Idempotency-Key, where the daemon ended in between: where an addition was to
 * begin is noted before it, and what of it is there then is not written again. Whatever else was written there meanwhile is
 * taken for another's, and the addition made whole.
 */
import type { Work } from "../../core/work.ts";
import type { OpenFile } from "../../host/files/open-file.ts";

type Once = Pick<Work, "begun" | "noteFirst">;

/** What of the bytes has still to be added to the file. */
export async function restOf(file: OpenFile, bytes: Uint8Array, work: Once): Promise<Uint8Array> {
  const { begun } = work;
  if (begun) {
    const there = await file.read(Number(begun.at), bytes.byteLength);
    if (there.equals(bytes.subarray(0, there.byteLength))) return bytes.subarray(there.byteLength);
  }
  await work.noteFirst({ at: file.freshFacts().size_bytes });
  return bytes;
}

/** Whether the file is what the same call was to make. */
export async function isMade(file: OpenFile | null, bytes: Uint8Array, { begun }: Once): Promise<boolean> {
  if (begun?.at !== 0 || file?.facts.size_bytes !== bytes.byteLength) return false;
  return (await file.read(0, bytes.byteLength)).equals(bytes);
}
