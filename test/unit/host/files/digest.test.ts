/** The digest of real files, with and without holes, compared with the hash of all of their bytes. */
import { createHash } from "node:crypto";
import {
  closeSync,
  mkdtempSync,
  openSync,
  readFileSync,
  rmSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { loopTime, Pieces } from "../../../../daemon/core/loop/index.ts";
import { Beneath } from "../../../../daemon/host/files/beneath.ts";
import { CHUNK_BYTES } from "../../../../daemon/host/files/open-file.ts";
import { toRaw } from "../../../../daemon/host/files/raw-path.ts";

const pieces = new Pieces(loopTime, "host", "room.drive");

const directory = mkdtempSync("/var/tmp/roomd-digest-");
const file = join(directory, "f");
afterAll(() => rmSync(directory, { recursive: true }));

const digestOf = async (length: number) => {
  using root = Beneath.open(directory);
  await using opened = root.file(toRaw("f"), "read");
  return await opened.digest(length, new AbortController().signal, pieces);
};

const DATA = Buffer.from("data");

test.each([
  ["nothing", 0, []],
  ["a small file", 100, [0]],
  ["a hole alone", 5 * CHUNK_BYTES + 1, []],
  ["data, a hole, data", 9 * CHUNK_BYTES, [0, 8 * CHUNK_BYTES + 17]],
  ["a hole first and last", 9 * CHUNK_BYTES + 5, [3 * CHUNK_BYTES - 2]],
  ["a hole shorter than a piece", CHUNK_BYTES, [0, CHUNK_BYTES - DATA.length]],
] as const)("of %s", async (_, size, places) => {
  writeFileSync(file, "");
  truncateSync(file, size);
  const descriptor = openSync(file, "r+");
  for (const place of places) writeSync(descriptor, DATA, 0, DATA.length, place);
  closeSync(descriptor);
  const bytes = readFileSync(file);
  expect(bytes).toHaveLength(size);
  for (const length of [size, size + 1000, Math.floor(size / 2)]) {
    const expected = createHash("sha256").update(bytes.subarray(0, length)).digest("hex");
    expect(await digestOf(length)).toBe(expected);
  }
});
