/** Lines of a guest's lists and watches: parsed whole, however they are cut into pieces. */
import { expect, test } from "vitest";
import { linesOf } from "../../../../daemon/host/guest-link/file-entry.ts";
import { MAX_FILE_LINE_BYTES } from "../../../../shared/agent-protocol/files.ts";

async function* piecesOf(bytes: Uint8Array, length: number) {
  for (let at = 0; at < bytes.byteLength; at += length) yield bytes.subarray(at, at + length);
}

async function parsed(bytes: Uint8Array, length: number): Promise<unknown[]> {
  const all: unknown[] = [];
  for await (const lines of linesOf(piecesOf(bytes, length))) all.push(...lines);
  return all;
}

test("entries are the same in pieces of any length", async () => {
  const entries = Array.from({ length: 50 }, (_, index) => ({ name: `é${index}`, text: "x".repeat(index * 7) }));
  const bytes = Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  for (const length of [1, 2, 13, 1000, bytes.byteLength]) expect(await parsed(bytes, length)).toEqual(entries);
});

test("a line that is too long is rejected before its end, also in pieces of one byte", async () => {
  const long = Buffer.alloc(MAX_FILE_LINE_BYTES + 1, 0x20);
  for (const length of [1, 4096, long.byteLength]) await expect(parsed(long, length)).rejects.toThrow("too long");
});

test("a line that never ends costs each of its bytes once", async () => {
  const concatenated: number[] = [];
  const concat = Buffer.concat;
  Buffer.concat = (list, ...rest) => {
    concatenated.push(list.reduce((sum, { byteLength }) => sum + byteLength, 0));
    return concat(list, ...rest);
  };
  try {
    const line = Buffer.from(`${JSON.stringify("y".repeat(10_000))}\n`);
    expect(await parsed(line, 1)).toHaveLength(1);
  } finally {
    Buffer.concat = concat;
  }
  expect(concatenated).toEqual([10_003]);
});
