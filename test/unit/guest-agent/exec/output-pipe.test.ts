/** A command's output pipe: complete at the command's end, whether it was followed before or not, and whichever other processes hold it. */
import { closeSync, writeSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { describe, expect, test } from "vitest";
import { Output } from "../../../../guest-agent/exec/output-pipe.ts";
import * as libc from "../../../../guest-agent/libc.ts";

const MIB = 1024 ** 2;
const PIECE_BYTES = 64 * 1024;

function begin() {
  const pipe = libc.pipe(MIB);
  const sent: Buffer[] = [];
  const output = new Output(pipe.read, async (most, read) => {
    const room = Buffer.alloc(Math.min(most, PIECE_BYTES));
    const count = read([room]);
    sent.push(room.subarray(0, count));
    return count;
  });
  return { output, writer: pipe.write, sent: () => Buffer.concat(sent) };
}

describe.each([
  ["followed", true],
  ["not followed", false],
])("an output that is %s", (_, isFollowed) => {
  test("has all bytes written by the command's end, in order", async () => {
    const { output, writer, sent } = begin();
    if (isFollowed) output.follow();
    const written = Buffer.alloc(MIB, "0123456789");
    expect(writeSync(writer, written)).toBe(MIB);
    closeSync(writer);
    await output.finish();
    expect(sent().equals(written)).toBe(true);
  });

  test("is complete though another process still holds it, whose further writes are ignored", async () => {
    const { output, writer, sent } = begin();
    if (isFollowed) output.follow();
    writeSync(writer, "the command's");
    await output.finish();
    expect(sent().toString()).toBe("the command's");
    // More than the pipe holds: it is still being drained.
    for (let written = 0; written < 4 * MIB; await sleep(1)) {
      while (libc.unreadBytes(writer) === 0 && written < 4 * MIB) written += writeSync(writer, Buffer.alloc(MIB / 2));
    }
    closeSync(writer);
    expect(sent().toString()).toBe("the command's");
  });

  test("ends without data if there was no output", async () => {
    const { output, writer, sent } = begin();
    if (isFollowed) output.follow();
    closeSync(writer);
    await output.finish();
    expect(sent().byteLength).toBe(0);
  });
});

test("an output with an endless writer is complete at the command's end", async () => {
  const { output, writer } = begin();
  const flood = Bun.spawn(["cat", "/dev/zero"], { stdio: ["ignore", writer, "ignore"] });
  closeSync(writer);
  try {
    await output.finish();
  } finally {
    flood.kill();
    await flood.exited;
  }
});
