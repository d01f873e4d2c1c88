/** Receiving the body of a request, at the pace of its writer. */
import { within } from "../../core/published.ts";
import { ServiceError } from "../../core/service-error.ts";

/** A client that sends nothing for this long is taken for gone, and its temporary file with it. */
const SILENCE_MS = 120_000;

/** Reads the body to its end, waiting for each write. A body that ends early is no file. */
export async function receive(
  body: ReadableStream<Uint8Array> | null,
  signal: AbortSignal,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<void> {
  const endedEarly = (cause?: unknown) => new ServiceError("invalid_body", { detail: "The body ended early.", cause });
  const reader = body?.getReader();
  const giveUp = () => void reader?.cancel().catch(() => {});
  signal.addEventListener("abort", giveUp, { once: true });
  try {
    while (reader) {
      const next = await within(reader.read(), SILENCE_MS, "the next part of the body").catch((error: unknown) => {
        throw endedEarly(error);
      });
      if (next.done) break;
      await write(next.value);
    }
    if (signal.aborted) throw signal.reason instanceof ServiceError ? signal.reason : endedEarly();
  } catch (error) {
    giveUp();
    throw error;
  } finally {
    signal.removeEventListener("abort", giveUp);
  }
}
