/**
 * Bytes that are sent from the caller's buffer, over a real socket: whole and in order, and the buffer is reusable immediately, however
 * slowly the peer reads.
 */
import { createHash, randomBytes } from "node:crypto";
import { expect, test } from "vitest";
import * as libc from "../../../guest-agent/libc.ts";
import { linkOver } from "../../../guest-agent/socket-link.ts";
import type { Link, Stream } from "../../../shared/agent-protocol/link.ts";

const KIB = 1024;
const CHANNEL = 1;

interface Pair {
  guest: Link;
  host: Link;
  sent: Stream;
  taken: Stream;
}

async function linked(): Promise<Pair> {
  const [hostEnd, guestEnd] = libc.socketPair();
  const opened = Promise.withResolvers<Stream>();
  const rest = { maxPeerStreams: 4, onHandshake: () => {}, onClosed: () => {} };
  const guest = await linkOver(guestEnd, { side: "guest", ...rest, onOpen: opened.resolve });
  const host = await linkOver(hostEnd, { side: "host", ...rest, onOpen: () => {} });
  const taken = host.open({ method: "any" });
  return { guest, host, sent: await opened.promise, taken };
}

test.each([
  ["immediately", 0],
  ["late", 2],
])("every size is received unchanged, read %s", async (_, pauseMs) => {
  const { guest, host, sent, taken } = await linked();
  // Around the sizes that are small, fill a packet, a frame, one call, and exceed its window.
  const sizes = [
    1,
    4096,
    4097,
    31 * KIB,
    62 * KIB - 10,
    62 * KIB - 9,
    62 * KIB,
    100_000,
    248 * KIB,
    249 * KIB,
    700_001,
  ];
  const written = createHash("sha256");
  const read = createHash("sha256");
  const writing = (async () => {
    for (const size of sizes) {
      const bytes = randomBytes(size);
      written.update(bytes);
      for (let at = 0; at < size; ) {
        const count = sent.push(CHANNEL, bytes.subarray(at));
        // The buffer is free again: changes to it do not arrive.
        bytes.fill(0, at, at + count);
        at += count;
        if (count === 0 || at < size) expect(await sent.writable(CHANNEL)).toBe(true);
      }
    }
    sent.endChannel(CHANNEL);
  })();
  for await (const bytes of taken.read(CHANNEL)) {
    read.update(bytes);
    if (pauseMs > 0) await Bun.sleep(pauseMs);
  }
  await writing;
  expect(read.digest("hex")).toBe(written.digest("hex"));
  guest.close("done");
  host.close("done");
});

test("unsent bytes are buffered, and precede later messages", async () => {
  const { guest, host, sent, taken } = await linked();
  const written = randomBytes(200 * KIB);
  const count = sent.push(CHANNEL, written);
  sent.say({ after: count });
  const received = Promise.withResolvers<unknown>();
  taken.hear(received.resolve);
  let read = 0;
  for await (const bytes of taken.read(CHANNEL)) {
    expect(Buffer.from(bytes).equals(written.subarray(read, read + bytes.byteLength))).toBe(true);
    read += bytes.byteLength;
    if (read === count) break;
  }
  expect(await received.promise).toEqual({ after: count });
  guest.close("done");
  host.close("done");
});

test("no data is sent over a closed link", async () => {
  const { guest, host, sent } = await linked();
  guest.close("over");
  expect(sent.push(CHANNEL, new Uint8Array(64 * KIB))).toBe(0);
  expect(await sent.writable(CHANNEL)).toBe(false);
  host.close("over");
});
