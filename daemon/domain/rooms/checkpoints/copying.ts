/** Copies drives for operations on whole rooms: cancelled with the operation, and with errors that the caller can act on. */
import { DeadlineError } from "../../../core/concurrency/published.ts";
import { errnoOf, ServiceError } from "../../../core/service-error.ts";
import { DriveCopier } from "../../../host/files/drive-copier.ts";

/** Throws the reason of `over` if that is aborted, disk_full, drive_full, invalid_state, and any other error of `work`. */
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
      detail: `The room could not be quiesced: ${error.message}.`,
      hint: "Retry when its sandboxes write less to the drive.",
      cause: error,
    });
  }
  const code = errnoOf(error);
  if (code === "ENOSPC") return new ServiceError("disk_full", { cause: error });
  if (code !== "EDQUOT") return error;
  return new ServiceError("drive_full", {
    detail: "The drive is over its quota: delete files until the room has no warnings.",
    cause: error,
  });
}
