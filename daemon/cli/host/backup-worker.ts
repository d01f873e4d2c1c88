/**
 * Process of a scheduled backup: reads the service's configuration from standard input and writes the result to standard output. It runs at
 * low CPU and I/O priority. When its standard input closes, its parent has ended: it kills its whole process group.
 */
import { constants, setPriority } from "node:os";
import type { BackupSaid, BackupWork } from "../../compose/backup-process.ts";
import { openOperator } from "../../compose/operator.ts";
import { makePaths } from "../../core/config/paths.ts";
import { makeLog } from "../../core/log.ts";
import { describeError } from "../../core/service-error.ts";
import { yieldDisk } from "../../host/own-priority.ts";
import { backupToStore, type Recording, requirePlan } from "./backup-store.ts";
import { workOf } from "./worker-input.ts";

/** Runs the worker; resolves with the process's exit status. */
export async function runBackupWorker(): Promise<number> {
  const { config } = await workOf<BackupWork>(process.stdin, () => process.kill(-process.pid, "SIGKILL"));
  setPriority(constants.priority.PRIORITY_LOW);
  yieldDisk();
  try {
    const paths = makePaths(config);
    const record: Recording = async (event, details) => {
      const operator = await openOperator({ config, paths, log: makeLog("warn") });
      await operator.record(event, details).finally(() => operator.close());
    };
    const { name, size_bytes } = await backupToStore({
      config,
      paths,
      record,
      plan: requirePlan(config),
      onStage: () => {},
    });
    await say({ stored: { name, size_bytes } });
    return 0;
  } catch (error) {
    await say({ failed: describeError(error) });
    return 1;
  }
}

const say = (message: BackupSaid): Promise<void> =>
  new Promise((resolve) => process.stdout.write(`${JSON.stringify(message)}\n`, () => resolve()));
