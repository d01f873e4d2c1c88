/** A file as a stream: what it reads is there at once where the file was just written, and others have their turns all the same. */
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { fileStream } from "../../../../daemon/host/files/file-stream.ts";
import { CHUNK_BYTES } from "../../../../daemon/host/files/open-file.ts";
import { nextTurn } from "../../../../daemon/host/files/pace.ts";
import type { RawPath } from "../../../../daemon/host/files/raw-path.ts";

const PIECES = 16;
const directory = mkdtempSync(join(tmpdir(), "roomd-file-stream-"));
afterAll(() => rmSync(directory, { recursive: true }));

test("each piece has a turn of the event loop", async () => {
  writeFileSync(join(directory, "f"), Buffer.alloc(PIECES * CHUNK_BYTES, 7));
  using root = Beneath.open(directory);
  const file = root.file("f" as RawPath, "read");
  let turns = 0;
  let isOver = false;
  const others = (async () => {
    for (; !isOver; turns++) await nextTurn();
  })();
  let length = 0;
  const stream = fileStream(file, 0, PIECES * CHUNK_BYTES, new AbortController().signal);
  for await (const bytes of stream) length += bytes.byteLength;
  isOver = true;
  await others;
  expect(length).toBe(PIECES * CHUNK_BYTES);
  expect(turns).toBeGreaterThanOrEqual(PIECES);
});
