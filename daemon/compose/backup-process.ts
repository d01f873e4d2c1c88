/** Worker process for the daemon's backups: it blocks no other work and ends with the daemon. */
import type { Config } from "../core/config/config.ts";
import type { Stored } from "../domain/backups/index.ts";
import { BACKUP_WORKER } from "../host/own-processes.ts";
import { startOwn } from "../host/process.ts";

/** Input of the process: one line of JSON. */
export interface BackupWork {
  config: Config;
}

/** Its only words. */
export type BackupSaid = { stored: Stored } | { failed: string };

/** Resolves when nothing of the process remains. */
export async function backUpApart(config: Config, signal: AbortSignal): Promise<BackupSaid> {
  if (signal.aborted) return { failed: "the service stops" };
  let lastMessage: BackupSaid | null = null;
  const worker = startOwn(BACKUP_WORKER, [JSON.stringify({ config } satisfies BackupWork)], (line) => {
    lastMessage = JSON.parse(line) as BackupSaid;
  });
  const end = () => void worker.end().catch(() => {});
  signal.addEventListener("abort", end, { once: true });
  try {
    const complaints = await worker.ended;
    return lastMessage ?? { failed: `the process of the backup has ended: ${complaints.trim().slice(-2000)}` };
  } finally {
    signal.removeEventListener("abort", end);
    await worker.end();
  }
}
