/** Owns taking a picture of a screen as it is at this moment. Few are made at once, and organizations take turns. */
import { FairPlaces } from "../../../core/fair-places.ts";
import { DeadlineError } from "../../../core/published.ts";
import { ServiceError } from "../../../core/service-error.ts";
import type { Frame, Rectangle } from "../rfb/frame.ts";
import { encodePng } from "./png.ts";
import { scaled, scaledSize } from "./scale.ts";

/** Each takes a thread while it is compressed, and up to some hundred MiB of the largest screen. */
const PLACES = new FairPlaces({ all: 4, org: 2, sandbox: 1, waiting: 16 });
const PLACE_MS = 15_000;
/** A picture of noise is as large as its pixels; it goes into an answer as a whole. */
export const MOST_PICTURE_BYTES = 16 * 1024 * 1024;

interface About {
  row: { org_id: string; sandbox_id: string };
}

/** `frame` is read once it is this picture's turn. Throws insufficient_capacity, validation_failed when it is too large. */
export async function takePicture(
  { row }: About,
  frame: () => Frame,
  part: (frame: Frame) => Rectangle,
  width: number | undefined,
): Promise<Buffer> {
  const leave = await PLACES.take(row, PLACE_MS).catch((cause: unknown) => {
    if (!(cause instanceof DeadlineError)) throw cause;
    const detail = "Too many pictures of screens are being taken.";
    throw new ServiceError("insufficient_capacity", { detail, cause });
  });
  try {
    const now = frame();
    const taken = part(now);
    // What is drawn meanwhile is another picture's.
    const still: Frame = { ...now, pixels: now.pixels.slice() };
    const png = await encodePng(await scaled(still, taken, scaledSize(taken, width ?? taken.width)));
    if (png.byteLength > MOST_PICTURE_BYTES) throw tooLarge(png.byteLength);
    return png;
  } finally {
    leave();
  }
}

function tooLarge(bytes: number): ServiceError {
  const message = `The picture would have ${bytes} bytes, which is more than ${MOST_PICTURE_BYTES}. Ask for a smaller width.`;
  return new ServiceError("validation_failed", {
    detail: message,
    errors: [{ field: "width", code: "out_of_range", message }],
  });
}
