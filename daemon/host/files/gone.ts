/** Errors that mean that a guest removed an entry, or replaced it with another kind, after it was found. */
import { readdir } from "node:fs/promises";
import { errnoOf } from "../../core/service-error.ts";

const GONE = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

export function isGone(error: unknown): boolean {
  return GONE.has(errnoOf(error) ?? "");
}

/** Null if the error means that the entry no longer exists; else throws it. */
export function absent(error: unknown): null {
  if (isGone(error)) return null;
  throw error;
}

/** Result of `find`, or null if the entry no longer exists. */
export function ifThere<T>(find: () => T): T | null {
  try {
    return find();
  } catch (error) {
    return absent(error);
  }
}

/** Names in a directory; empty if it no longer exists. */
export async function namesIn(directory: string): Promise<string[]> {
  return (await readdir(directory).catch(absent)) ?? [];
}
