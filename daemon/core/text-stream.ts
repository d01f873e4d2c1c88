/** Owns a long text as an answer: each piece of it is made when it is asked for, in a turn of its own, and none is kept for who takes nothing. */
import { FlowTurns } from "./turn.ts";

/** `over` is called once nobody takes any more of it. */
export function textStream(
  pieces: AsyncIterator<string> | Iterator<string>,
  over: () => Promise<void> = async () => {},
): ReadableStream<Uint8Array> {
  const turns = new FlowTurns();
  return new ReadableStream<Uint8Array>(
    {
      pull: async (controller) => {
        try {
          await turns.next();
          const { done, value } = await pieces.next();
          if (!done) {
            const bytes = Buffer.from(value);
            turns.moved(bytes.byteLength);
            return controller.enqueue(bytes);
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
