/** Receives the body of a request at the pace of its writer. */

import { within } from "../../../core/concurrency/published.ts";
import { loopTime, ownerOf } from "../../../core/loop/index.ts";
import { ServiceError } from "../../../core/service-error.ts";

/** A client that sends nothing for this long counts as disconnected, and its temporary file is removed. */
const SILENCE_MS = 120_000;
/** Smaller parts are written together, up to 64 of them or 64 KiB: a write costs more than its bytes. */
const SMALL_BYTES = 4096;
const MAX_PARTS = 64;
const MAX_BYTES = 64 * 1024;

/** Reads the body to its end, awaiting each write, on event-loop time of its organization. A body that ends early creates no file. */
export async function receive(
  body: ReadableStream<Uint8Array> | null,
  { orgId, signal }: { orgId: string; signal: AbortSignal },
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const endedEarly = (cause?: unknown) => new ServiceError("invalid_body", { detail: "The body ended early.", cause });
  const reader = body?.getReader();
  const giveUp = () => void reader?.cancel().catch(() => {});
  signal.addEventListener("abort", giveUp, { once: true });
  const owner = ownerOf(orgId);
  const small: Uint8Array[] = [];
  let smallBytes = 0;
  const writeSmall = async () => {
    if (small.length === 0) return;
    const bytes = Buffer.concat(small);
    [small.length, smallBytes] = [0, 0];
    await write(bytes);
  };
  try {
    while (reader) {
      const next = await within(reader.read(), SILENCE_MS, "the next part of the body").catch((error: unknown) => {
        throw endedEarly(error);
      });
      loopTime.goesOn(owner, "body");
      if (next.done) break;
      if (next.value.byteLength < SMALL_BYTES) {
        small.push(next.value);
        smallBytes += next.value.byteLength;
        if (small.length < MAX_PARTS && smallBytes < MAX_BYTES) continue;
        // Limits the small parts per piece, however many have arrived.
        await loopTime.next(owner, "body");
        await writeSmall();
      } else {
        await writeSmall();
        await write(next.value);
      }
    }
    await writeSmall();
    if (signal.aborted) throw signal.reason instanceof ServiceError ? signal.reason : endedEarly();
  } catch (error) {
    giveUp();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}
