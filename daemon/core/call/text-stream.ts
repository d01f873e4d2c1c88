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

/** A text may be six times as long in JSON: a long one is written in pieces of this size. */
export const LONG_TEXT = 64 * 1024;

/** As JSON.stringify writes it; a character that is split between two pieces is written as its two surrogates, which mean the same. */
export function* jsonPieces(body: object): Generator<string> {
  let before = "{";
  for (const [name, value] of Object.entries(body) as [string, unknown][]) {
    if (value === undefined) continue;
    yield `${before}${JSON.stringify(name)}:`;
    before = ",";
    if (typeof value !== "string") {
      yield JSON.stringify(value);
      continue;
    }
    yield '"';
    for (let at = 0; at < value.length; at += LONG_TEXT)
      yield JSON.stringify(value.slice(at, at + LONG_TEXT)).slice(1, -1);
    yield '"';
  }
  yield "}";
}
