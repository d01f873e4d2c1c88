/**
 * Idempotent writes: a retry under an Idempotency-Key after the daemon stopped in between. The offset of an append is stored before it, and
 * bytes of it that are already there are not written again. If other data is there, it is taken for another writer's, and the whole append
 * is repeated.
 */
import type { CallEffects } from "../../../core/call/call-effects.ts";
import type { OpenFile } from "../../../host/files/open-file.ts";

type Once = Pick<CallEffects, "begun" | "noteFirst">;

/** The bytes that remain to be appended to the file. */
export async function restOf(file: OpenFile, bytes: Uint8Array, work: Once): Promise<Uint8Array> {
  const { begun } = work;
  if (begun) {
    const there = await file.read(Number(begun.at), bytes.byteLength);
    if (there.equals(bytes.subarray(0, there.byteLength))) return bytes.subarray(there.byteLength);
  }
  await work.noteFirst({ at: file.freshFacts().size_bytes });
  return bytes;
}

/** Whether the file is already the result of the same call. */
export async function isMade(file: OpenFile | null, bytes: Uint8Array, { begun }: Once): Promise<boolean> {
  if (begun?.at !== 0 || file?.facts.size_bytes !== bytes.byteLength) return false;
  return (await file.read(0, bytes.byteLength)).equals(bytes);
}
