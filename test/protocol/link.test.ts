/** Two links in memory: streams that share them, the pace of their readers, and how everything ends. */
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import { StreamError, WINDOW_BYTES } from "../../shared/agent-protocol/link.ts";
import { StreamErrorCode } from "../../shared/agent-protocol/messages.ts";
import { joined, readAll, settled } from "./wire.ts";

const REQUEST = { method: "test" };

async function opened(options: Parameters<typeof joined>[0] = {}) {
  const both = joined(options);
  const stream = both.host.link.open(REQUEST);
  await settled();
  const peer = both.guest.opened[0]?.stream;
  if (!peer) throw new Error("the stream did not arrive");
  return { ...both, stream, peer };
}

describe("a stream", () => {
  test("carries request, bytes both ways, events and its result", async () => {
    const { stream, peer, guest } = await opened();
    expect(guest.opened[0]?.request).toEqual(REQUEST);
    const received: unknown[] = [];
    stream.hear((event) => received.push(event));
    peer.say({ n: 1 });
    peer.say({ n: 2 });
    void stream.write(0, Buffer.from("to the guest")).then(() => stream.endChannel(0));
    void peer.write(1, Buffer.from("to the host")).then(() => peer.endChannel(1));
    expect((await readAll(peer, 0)).toString()).toBe("to the guest");
    expect((await readAll(stream, 1)).toString()).toBe("to the host");
    peer.finish({ done: true });
    expect(await stream.finished).toEqual({ done: true });
    expect(received).toEqual([{ n: 1 }, { n: 2 }]);
    expect([stream.ended, peer.ended]).toEqual([true, true]);
  });

  test("delivers events that arrived before a listener", async () => {
    const { stream, peer } = await opened();
    peer.say("early");
    await settled();
    const received: unknown[] = [];
    stream.hear((event) => received.push(event));
    peer.say("late");
    await settled();
    expect(received).toEqual(["early", "late"]);
  });

  test("fails with the peer's code and message", async () => {
    const { stream, peer } = await opened();
    peer.fail("cwd_not_found", "there is no /nowhere");
    await expect(stream.finished).rejects.toMatchObject({ code: "cwd_not_found", message: "there is no /nowhere" });
    await expect(stream.finished).rejects.toBeInstanceOf(StreamError);
  });

  test("fails as lost only if the link is closed: a peer's claim is not accepted, and its message is truncated", async () => {
    const { stream, peer, host } = await opened();
    const other = host.link.open(REQUEST);
    peer.fail(StreamErrorCode.link_closed, "x".repeat(10_000));
    const failure = await stream.finished.catch((error: StreamError) => error);
    expect(failure).toMatchObject({ code: "internal", message: "x".repeat(500) });
    host.link.close("cut");
    await expect(other.finished).rejects.toMatchObject({ code: "link_closed", message: "cut" });
  });

  test("delivers data from before its end, and accepts none after it", async () => {
    const { stream, peer } = await opened();
    await peer.write(1, Buffer.from("last words"));
    peer.finish(null);
    await settled();
    expect((await readAll(stream, 1)).toString()).toBe("last words");
    expect(await stream.write(0, Buffer.from("too late"))).toBe(false);
    expect(await peer.write(1, Buffer.from("too late"))).toBe(false);
    stream.say("too late");
    stream.endChannel(0);
    stream.finish("too late");
    expect(await stream.finished).toBeNull();
  });

  test("can be opened by either side, with separate IDs", async () => {
    const { host, guest, stream } = await opened();
    const fromGuest = guest.link.open(REQUEST);
    await settled();
    expect(host.opened[0]?.stream.id).toBe(fromGuest.id);
    expect([stream.id % 2, fromGuest.id % 2]).toEqual([1, 0]);
  });

  test("that the peer has ended stays known while frames to it are in transit", async () => {
    const { stream, peer, toGuest, host, guest } = await opened();
    toGuest.hold();
    void stream.write(0, new Uint8Array(1000));
    stream.say("on its way");
    peer.finish(1);
    expect(await stream.finished).toBe(1);
    toGuest.release();
    await settled();
    expect([host.link.closedReason, guest.link.closedReason]).toEqual([null, null]);
  });
});

describe("a reader", () => {
  test("that does not read blocks the writer at the window, and no other stream", async () => {
    const { host, guest, stream, peer, toHost } = await opened();
    const total = WINDOW_BYTES * 4;
    let written = 0;
    const writing = (async () => {
      for (; written < total; written += 1024) await peer.write(1, new Uint8Array(1024).fill(written / 1024));
      peer.endChannel(1);
    })();
    await settled();
    expect(written).toBe(WINDOW_BYTES);

    // Another stream, and another channel of this one, go on.
    const other = host.link.open(REQUEST);
    await settled();
    const otherPeer = guest.opened[1]?.stream;
    const sending = otherPeer?.write(1, new Uint8Array(total)).then(() => otherPeer.endChannel(1));
    expect((await readAll(other, 1)).length).toBe(total);
    await sending;
    void peer.write(2, Buffer.from("err")).then(() => peer.endChannel(2));
    expect((await readAll(stream, 2)).toString()).toBe("err");
    expect(written).toBe(WINDOW_BYTES);

    const read = await readAll(stream, 1);
    await writing;
    expect(read.length).toBe(total);
    expect(read.every((byte, index) => byte === Math.floor(index / 1024) % 256)).toBe(true);
    // Never more on its way than the windows of the channels in use.
    expect(toHost.most).toBeLessThan(3 * WINDOW_BYTES);
  });

  test("that consumes a little is sent as much more, never beyond the window", async () => {
    const { stream, peer } = await opened();
    let written = 0;
    void (async () => {
      while (await peer.write(1, new Uint8Array(4096))) written += 4096;
    })();
    await settled();
    const reader = stream.read(1);
    for (let read = 0; read < WINDOW_BYTES * 2; ) {
      read += (await reader.next()).value?.byteLength ?? 0;
      await settled();
      expect(written - read).toBeLessThanOrEqual(WINDOW_BYTES);
      expect(written - read).toBeGreaterThanOrEqual(WINDOW_BYTES / 4 - 4096);
    }
    peer.finish(null);
  });

  test("that consumes bytes on arrival returns credit itself", async () => {
    const { stream, peer } = await opened();
    const taken: number[] = [];
    void stream.write(0, new Uint8Array(1000).fill(1));
    await settled();
    const arrived = peer.passTo(0, (bytes) => taken.push(...bytes));
    void stream.write(0, new Uint8Array(WINDOW_BYTES).fill(2)).then(() => stream.endChannel(0));
    await settled();
    expect([taken.length, taken[999], taken[1000]]).toEqual([WINDOW_BYTES, 1, 2]);
    peer.giveBack(0, WINDOW_BYTES);
    await arrived;
    expect(taken.length).toBe(WINDOW_BYTES + 1000);
  });

  test("may widen the window, which is then the limit", async () => {
    const { stream, peer } = await opened();
    const wide = 3 * WINDOW_BYTES;
    let written = 0;
    void (async () => {
      while (await stream.write(0, new Uint8Array(4096))) written += 4096;
    })();
    await settled();
    expect(written).toBe(WINDOW_BYTES);
    peer.widenIncoming(0, wide);
    stream.widenOutgoing(0, wide);
    await settled();
    expect(written).toBe(wide);
    const reader = peer.read(0);
    for (let read = 0; read < 2 * wide; ) {
      read += (await reader.next()).value?.byteLength ?? 0;
      await settled();
      expect(written - read).toBeLessThanOrEqual(wide);
      expect(written - read).toBeGreaterThanOrEqual(wide - WINDOW_BYTES);
    }
    peer.finish(null);
  });

  test("waits for a full transport", async () => {
    const { stream, peer, toGuest } = await opened({ capacity: 10_000 });
    toGuest.hold();
    let done = false;
    const writing = stream.write(0, new Uint8Array(200_000)).then(() => {
      done = true;
    });
    await settled();
    expect(done).toBe(false);
    // One frame more than the transport accepts, not the whole window.
    expect(toGuest.waiting).toBeLessThan(100_000);
    toGuest.release();
    await writing;
    stream.endChannel(0);
    expect((await readAll(peer, 0)).length).toBe(200_000);
  });
});

test("data on any streams arrive completely and in order", async () => {
  const write = fc.record({
    stream: fc.nat({ max: 3 }),
    channel: fc.nat({ max: 2 }),
    length: fc.nat({ max: 100_000 }),
  });
  await fc.assert(
    fc.asyncProperty(
      fc.array(write, { maxLength: 25 }),
      fc.integer({ min: 1, max: 300_000 }),
      async (writes, capacity) => {
        const { host, guest } = joined({ capacity });
        const streams = Array.from({ length: 4 }, () => host.link.open(REQUEST));
        await settled();
        const peers = guest.opened.map(({ stream }) => stream);
        const expected = new Map<string, number[]>();
        const work = new Map<string, Promise<unknown>>();
        for (const [index, { stream, channel, length }] of writes.entries()) {
          const key = `${stream} ${channel}`;
          expected.set(key, [...(expected.get(key) ?? []), ...Array.from({ length }, () => index)]);
          const before = work.get(key) ?? Promise.resolve();
          work.set(
            key,
            before.then(() => streams[stream]?.write(channel, new Uint8Array(length).fill(index))),
          );
        }
        const arrived = peers.flatMap((peer, stream) =>
          [0, 1, 2].map(async (channel) => [`${stream} ${channel}`, await readAll(peer, channel)] as const),
        );
        await Promise.all(work.values());
        for (const stream of streams) for (const channel of [0, 1, 2]) stream.endChannel(channel);
        for (const [key, bytes] of await Promise.all(arrived)) {
          expect(bytes.equals(Buffer.from(expected.get(key) ?? []))).toBe(true);
        }
        expect([host.closed, guest.closed]).toEqual([[], []]);
      },
    ),
    { numRuns: 30 },
  );
});

describe("too many streams", () => {
  test("are refused individually, and accepted again when others have ended", async () => {
    const { host, guest } = joined({ guest: { maxPeerStreams: 2 } });
    const [first, , third] = [1, 2, 3].map(() => host.link.open(REQUEST));
    await expect(third?.finished).rejects.toMatchObject({ code: "too_many_streams" });
    expect(guest.opened).toHaveLength(2);
    guest.opened[0]?.stream.finish("ended");
    expect(await first?.finished).toBe("ended");
    const fourth = host.link.open(REQUEST);
    await settled();
    guest.opened[2]?.stream.finish("taken");
    expect(await fourth.finished).toBe("taken");
  });
});

describe("ping", () => {
  test("is answered, also while a stream's reader is stalled", async () => {
    const { host, guest, stream, peer } = await opened();
    void peer.write(1, new Uint8Array(WINDOW_BYTES * 2));
    await settled();
    await Promise.all([host.link.ping(), guest.link.ping(), host.link.ping()]);
    stream.finish(null);
  });

  test("fails if the link ends first", async () => {
    const { host, toGuest } = joined();
    toGuest.hold();
    const ping = host.link.ping();
    host.link.close("enough");
    await expect(ping).rejects.toMatchObject({ code: "link_closed" });
    await expect(host.link.ping()).rejects.toMatchObject({ code: "link_closed" });
  });
});

describe("the end of a link", () => {
  test("settles every pending operation on its side, once, with the reason", async () => {
    const { host, stream, peer, toGuest } = await opened({ capacity: 1000 });
    const full = stream.write(0, new Uint8Array(WINDOW_BYTES + 1));
    await settled();
    const reading = readAll(stream, 1);
    const other = host.link.open(REQUEST);
    toGuest.hold();
    const stuck = other.write(0, new Uint8Array(200_000));
    const ping = host.link.ping();
    host.link.close("the guest is gone");
    host.link.close("again");

    expect(await full).toBe(false);
    expect(await stuck).toBe(false);
    expect((await reading).length).toBe(0);
    for (const each of [stream.finished, other.finished]) {
      await expect(each).rejects.toMatchObject({ code: "link_closed", message: "the guest is gone" });
    }
    await expect(ping).rejects.toMatchObject({ code: "link_closed" });
    expect(host.closed).toEqual(["the guest is gone"]);
    expect(() => host.link.open(REQUEST)).toThrow("the guest is gone");
    expect(peer.ended).toBe(false);
  });

  test("leaves no unhandled rejection", async () => {
    const unhandled: unknown[] = [];
    const note = (reason: unknown) => void unhandled.push(reason);
    process.on("unhandledRejection", note);
    const { host, guest } = joined();
    for (let n = 0; n < 10; n++) host.link.open(REQUEST);
    await settled();
    host.link.close("enough");
    guest.link.close("enough");
    await settled();
    process.off("unhandledRejection", note);
    expect(unhandled).toEqual([]);
  });
});
