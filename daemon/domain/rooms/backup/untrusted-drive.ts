/** Restores a drive from an untrusted store: within bounds, and with errors attributed to the file. */
import { DeadlineError } from "../../../core/concurrency/published.ts";
import { errnoOf } from "../../../core/service-error.ts";
import type { Copied, Restoring } from "../../../host/files/drive-store.ts";
import { copying } from "../checkpoints/copying.ts";
import { NotWhole } from "../move/format.ts";

/** Errors that an invalid list of entries can cause. */
const OF_THE_LIST = ["ENOENT", "EEXIST", "ENAMETOOLONG", "EINVAL", "ENOTDIR", "EISDIR", "EFBIG"];

/** Throws NotWhole, drive_full, disk_full. */
export async function restoreUntrustedDrive(
  over: AbortSignal,
  restoring: Restoring & Required<Pick<Restoring, "bounds">>,
): Promise<Copied> {
  return await copying(over, async (copier) => {
    try {
      return await copier.restore(restoring);
    } catch (error) {
      const code = errnoOf(error);
      const isOfList = code === null || OF_THE_LIST.includes(code);
      if (over.aborted || error instanceof DeadlineError || !isOfList) throw error;
      throw new NotWhole("the list of its drive's entries is malformed", { cause: error });
    }
  });
}
