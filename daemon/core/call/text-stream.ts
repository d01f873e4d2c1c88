/**
 * A long text as a response: each piece is made on demand, in a separate turn of the event loop; nothing is buffered for a client that does
 * not read.
 */
import { loopTime, Pieces } from "../loop/index.ts";

/** `over` is called when reading has ended. */
export function textStream(
  pieces: AsyncIterator<string> | Iterator<string>,
  over: () => Promise<void> = async () => {},
): ReadableStream<Uint8Array> {
  const turns = new Pieces(loopTime, loopTime.owner, "stream");
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          await turns.next();
          const { done, value } = await pieces.next();
          if (!done) {
            return controller.enqueue(Buffer.from(value));
          }
          await over();
          controller.close();
        } catch (error) {
          await over();
          throw error;
        }
      },
      cancel: over,
    },
    { highWaterMark: 0 },
  );
}
