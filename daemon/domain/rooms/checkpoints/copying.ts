/** Owns the copying of drives for what is done with a room as a whole: it is given up with that, and what keeps it from being done is told. */
import { DeadlineError } from "../../../core/published.ts";
import { errnoOf, ServiceError } from "../../../core/service-error.ts";
import { DriveCopier } from "../../../host/files/drive-copier.ts";

/** Throws the reason of `over` when that is given up, disk_full, drive_full, invalid_state, and what else `work` throws. */
export async function copying<T>(over: AbortSignal, work: (copier: DriveCopier) => Promise<T>): Promise<T> {
  await using copier = new DriveCopier();
  const giveUp = () => copier.giveUp();
  over.addEventListener("abort", giveUp, { once: true });
  try {
    over.throwIfAborted();
    return await work(copier);
  } catch (error) {
    throw over.aborted ? over.reason : meant(error);
  } finally {
    over.removeEventListener("abort", giveUp);
  }
}

function meant(error: unknown): unknown {
  if (error instanceof DeadlineError) {
    return new ServiceError("invalid_state", {
      detail: `The room could not be brought to a standstill: ${error.message}.`,
      hint: "Try again when less is written to its drive.",
      cause: error,
    });
  }
  const code = errnoOf(error);
  if (code === "ENOSPC") return new ServiceError("disk_full", { cause: error });
  if (code !== "EDQUOT") return error;
  return new ServiceError("drive_full", {
    detail: "The drive has more than its quota: delete files until the room has no warnings.",
    cause: error,
  });
}
