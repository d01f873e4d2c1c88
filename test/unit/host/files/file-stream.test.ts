/** A file as a stream, of which all is in memory already: others have their turns all the same. */
import { expect, test } from "vitest";
import { fileStream } from "../../../../daemon/host/files/file-stream.ts";
import { CHUNK_BYTES } from "../../../../daemon/host/files/open-file.ts";
import { nextTurn } from "../../../../daemon/host/files/pace.ts";

const PIECES = 16;

test("each piece has a turn of the event loop", async () => {
  let isClosed = false;
  const file = {
    read: async (_: number, length: number) => Buffer.alloc(length, 7),
    [Symbol.asyncDispose]: async () => {
      isClosed = true;
    },
  };
  let turns = 0;
  const others = (async () => {
    for (; !isClosed; turns++) await nextTurn();
  })();
  let length = 0;
  const stream = fileStream(file, 0, PIECES * CHUNK_BYTES, new AbortController().signal);
  for await (const bytes of stream) length += bytes.byteLength;
  await others;
  expect(length).toBe(PIECES * CHUNK_BYTES);
  expect(turns).toBeGreaterThanOrEqual(PIECES);
});
