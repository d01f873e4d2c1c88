/** Pictures of a screen's current content. Concurrency is limited, and organizations take turns. */

import { FairSemaphore } from "../../../core/concurrency/fair-semaphore.ts";
import { DeadlineError } from "../../../core/concurrency/published.ts";
import { loopTime, ownerOf, Pieces } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { RfbClient } from "../rfb/client.ts";
import type { Frame, Rectangle } from "../rfb/frame.ts";
import { encodePng } from "./png.ts";
import { scaled, scaledSize } from "./scale.ts";

/** Each picture takes a thread while it is compressed, and up to about a hundred MiB for the largest screen. */
const PLACES = new FairSemaphore({ all: 4, org: 2, sandbox: 1, waiting: 16 });
const PLACE_MS = 15_000;
/** Maximum size, as a response contains a whole picture. A picture of noise is as large as its pixels: 3 MiB for a screen of 1280x800. */
export const MAX_PICTURE_BYTES = 4 * 1024 * 1024;

interface PictureSandbox {
  row: { org_id: string; sandbox_id: string };
}

interface PictureRequest {
  part: (frame: Frame) => Rectangle;
  width: number | undefined;
  /** The call's. */
  signal: AbortSignal;
}

/** Uses the frame at its turn. Throws refusals (`isRefusal`), and the reason if the connection or the call has ended. */
export async function takePicture(
  { row }: PictureSandbox,
  client: Pick<RfbClient, "frame" | "ended">,
  { part, width, signal }: PictureRequest,
): Promise<Buffer> {
  const over = AbortSignal.any([signal, client.ended]);
  const leave = await PLACES.take(row, PLACE_MS, over).catch((cause: unknown) => {
    over.throwIfAborted();
    if (!(cause instanceof DeadlineError)) throw cause;
    const detail = "Too many pictures of screens are being taken.";
    throw new ServiceError("insufficient_capacity", { detail, cause });
  });
  try {
    over.throwIfAborted();
    const now = client.frame;
    const taken = part(now);
    // A copy: later drawing must not change this picture.
    const still: Frame = { ...now, pixels: now.pixels.slice() };
    const pieces = new Pieces(loopTime, ownerOf(row.org_id), "room.screen");
    const pixels = await scaled(still, taken, scaledSize(taken, width ?? taken.width), pieces);
    over.throwIfAborted();
    const png = await encodePng(pixels, pieces);
    if (png.byteLength > MAX_PICTURE_BYTES) throw tooLarge(png.byteLength);
    return png;
  } finally {
    leave();
  }
}

/** Whether a picture was refused because too many are being taken, or because it is too large. */
export function isRefusal(error: unknown): boolean {
  return error instanceof ServiceError && ["insufficient_capacity", "validation_failed"].includes(error.code);
}

function tooLarge(bytes: number): ServiceError {
  const message = `The picture would have ${bytes} bytes, which is more than ${MAX_PICTURE_BYTES}. Request a smaller width.`;
  return new ServiceError("validation_failed", {
    detail: message,
    errors: [{ field: "width", code: "out_of_range", message }],
  });
}
