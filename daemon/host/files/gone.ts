/** Owns what it looks like when a guest took an entry away, or put another kind there, after it was found. */
import { readdir } from "node:fs/promises";
import { errnoOf } from "../../core/service-error.ts";

const GONE = new Set(["ENOENT", "ENOTDIR", "ELOOP"]);

export function isGone(error: unknown): boolean {
  return GONE.has(errnoOf(error) ?? "");
}

/** What `find` finds, or null when it is no longer there. */
export function ifThere<T>(find: () => T): T | null {
  try {
    return find();
  } catch (error) {
    if (isGone(error)) return null;
    throw error;
  }
}

/** What a directory has; nothing when it is no longer there. */
export async function namesIn(directory: string): Promise<string[]> {
  try {
    return await readdir(directory);
  } catch (error) {
    if (isGone(error)) return [];
    throw error;
  }
}
