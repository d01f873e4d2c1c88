/** Owns making a drive of a store that anybody may have written: within bounds, and what is wrong with it is told as of the file. */
import { DeadlineError } from "../../../core/published.ts";
import { errnoOf } from "../../../core/service-error.ts";
import type { Copied, Restoring } from "../../../host/files/drive-store.ts";
import { copying } from "../checkpoints/copying.ts";
import { NotWhole } from "../move/format.ts";

/** What a list that no roomd has made comes to. */
const OF_THE_LIST = ["ENOENT", "EEXIST", "ENAMETOOLONG", "EINVAL", "ENOTDIR", "EISDIR", "EFBIG"];

/** Throws NotWhole, drive_full, disk_full. */
export async function restoreForeignDrive(
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
      throw new NotWhole("the list of what is on its drive is none that a roomd has written", { cause: error });
    }
  });
}
