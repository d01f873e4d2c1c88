/** Copies of days of the audit into separate files, made by a thread that then exits. */
import { DiskFailure } from "../../../core/disk-failure.ts";
import { loopTime } from "../../../core/loop/index.ts";
import type { auditStretches } from "../table.ts";

export interface CopyOrder {
  /** File of the database. */
  database: string;
  directory: string;
  /** Only days that ended before this moment are copied. */
  before: string;
}

export interface CopiedDay {
  name: string;
  sha256: string;
  size_bytes: number;
  stretches: Omit<typeof auditStretches.$inferSelect, "file">[];
}

/** `isLost`: the disk may have lost written data. */
export type CopyAnswer = { copied: CopiedDay | null } | { failed: string; isLost: boolean };

/**
 * Copies the oldest day that has ended and is not closed; null if absent, or the signal aborts. Rejects with DiskFailure, and on a
 * full disk.
 */
export async function copyDay(order: CopyOrder, signal: AbortSignal): Promise<CopiedDay | null> {
  if (signal.aborted) return null;
  const thread = new Worker(new URL("./day-thread.ts", import.meta.url).href);
  const { promise, resolve, reject } = Promise.withResolvers<CopyAnswer>();
  const leave = () => resolve({ copied: null });
  signal.addEventListener("abort", leave, { once: true });
  thread.onmessage = ({ data }: MessageEvent<CopyAnswer>) => {
    loopTime.goesOn("host", "thread");
    resolve(data);
  };
  thread.onerror = ({ message }) => reject(new Error(`the thread that copies a day has ended: ${message}`));
  thread.postMessage(order);
  try {
    const answer = await promise;
    if ("copied" in answer) return answer.copied;
    throw answer.isLost ? new DiskFailure(answer.failed) : new Error(answer.failed);
  } finally {
    signal.removeEventListener("abort", leave);
    thread.terminate();
  }
}
