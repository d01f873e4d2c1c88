/** Waiting for empty pipes: each waiter is woken for its own pipe, for earlier bytes too, and for the end; nothing is read. */
import { closeSync, writeSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { waitUntilReadable } from "../../../../guest-agent/exec/poll-pipes.ts";
import * as libc from "../../../../guest-agent/libc.ts";

let pipe: libc.Pipe;
beforeEach(() => {
  pipe = libc.pipe();
});
afterEach(() => closeSync(pipe.read));

async function isOver(over: Promise<void>): Promise<boolean> {
  let settled = false;
  over.then(() => {
    settled = true;
  });
  for (let turn = 0; turn < 20; turn++) await new Promise((done) => setImmediate(done));
  return settled;
}

test("a wait ends with the first byte, which stays unread", async () => {
  const { over } = waitUntilReadable(pipe.read);
  expect(await isOver(over)).toBe(false);
  writeSync(pipe.write, "x");
  await over;
  expect(libc.unreadBytes(pipe.read)).toBe(1);
  closeSync(pipe.write);
});

test("earlier bytes, and an end, need no wait", async () => {
  writeSync(pipe.write, "x");
  await waitUntilReadable(pipe.read).over;
  const place = Buffer.alloc(4);
  expect(libc.readNow(pipe.read, [place])).toBe(1);
  expect(libc.readNow(pipe.read, [place])).toBe(0);
  closeSync(pipe.write);
  await waitUntilReadable(pipe.read).over;
});

test("the end of a pipe ends its wait", async () => {
  const { over } = waitUntilReadable(pipe.read);
  closeSync(pipe.write);
  await over;
  expect(libc.pipeState(pipe.read)).toBe("ended");
});

test("of many waits only those with data end, repeatedly", async () => {
  const pipes = Array.from({ length: 20 }, () => libc.pipe());
  for (let round = 0; round < 3; round++) {
    const waits = pipes.map(({ read }) => waitUntilReadable(read));
    const written = pipes.map((_, index) => index % 3 === round);
    for (const [index, { write }] of pipes.entries()) if (written[index]) writeSync(write, "x");
    await Promise.all(waits.filter((_, index) => written[index]).map(({ over }) => over));
    expect(await Promise.all(waits.map(({ over }) => isOver(over)))).toEqual(written);
    for (const { stop } of waits) stop();
    await Promise.all(waits.map(({ over }) => over));
    for (const [index, { read }] of pipes.entries()) if (written[index]) libc.readNow(read, [Buffer.alloc(1)]);
  }
  for (const { read, write } of pipes) for (const fd of [read, write]) closeSync(fd);
  closeSync(pipe.write);
});

test("read bytes go to several buffers, one after another", () => {
  libc.setNonBlocking(pipe.read);
  writeSync(pipe.write, "abcdefg");
  const places = [Buffer.alloc(3), Buffer.alloc(2), Buffer.alloc(4, "-")];
  expect(libc.readNow(pipe.read, places)).toBe(7);
  expect(places.map(String)).toEqual(["abc", "de", "fg--"]);
  closeSync(pipe.write);
});
