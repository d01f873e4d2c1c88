/** Owns a long text as an answer: each piece of it is made when it is asked for, in a turn of its own, and none is kept for who takes nothing. */
import { loopTime, Pieces } from "./loop/index.ts";

/** `over` is called once nobody takes any more of it. */
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
