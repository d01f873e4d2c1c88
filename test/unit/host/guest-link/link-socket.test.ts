/** The valve of a guest's connection: while it is shut nothing gets through, and afterwards everything does, in order. */
import { describe, expect, test, vi } from "vitest";
import { linkSocket } from "../../../../daemon/host/guest-link/link-socket.ts";
import { NO_QUIRKS, quirksOf } from "../../../../shared/agent-protocol/device-quirks.ts";
import {
  encodeFrame,
  FrameDecoder,
  FrameType,
  MAX_PAYLOAD_FROM_HOST,
} from "../../../../shared/agent-protocol/frame.ts";
import { HOST_PORT } from "../../../../shared/agent-protocol/messages.ts";

const NOTHING = new Uint8Array(0);

/** A socket that takes `room` bytes at a time, and the guest that reads them. */
function connected(has = quirksOf(null)) {
  const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_HOST);
  const heard: number[] = [];
  const socket = {
    room: Number.POSITIVE_INFINITY,
    reading: true,
    ended: false,
    write(bytes: Uint8Array): number {
      const taken = Math.min(bytes.byteLength, socket.room);
      socket.room -= taken;
      for (const { type } of decoder.push(bytes.slice(0, taken))) heard.push(type);
      return taken;
    },
    pause: () => {
      socket.reading = false;
    },
    resume: () => {
      socket.reading = true;
    },
    end: () => {
      socket.ended = true;
    },
  };
  const { link, drain, receive, end } = linkSocket(
    socket as unknown as Parameters<typeof linkSocket>[0],
    { to: HOST_PORT, from: null },
    has,
  );
  const pong = () => link.receive(encodeFrame(FrameType.pong, 0, NOTHING));
  return { socket, link, receive, drain, end, heard, pong };
}

const holds = async (work: Promise<unknown>): Promise<boolean> => {
  const open = {};
  return (await Promise.race([work, Promise.resolve(open)])) === open;
};

test("a guest that requests more than its allowance is not read from until it has regained it", async () => {
  // It earns nothing back before the clock moves.
  const clock = vi.spyOn(performance, "now").mockReturnValue(performance.now());
  // Work that exceeds a turn of the event loop waits for the next.
  const nextTurns = () => new Promise((resolve) => setImmediate(() => setImmediate(() => setImmediate(resolve))));
  const { socket, link, receive } = connected();
  link.believe();
  const request = new TextEncoder().encode('{"method":"egress_resolve","name":"a.example"}');
  let requestCount = 0;
  for (; socket.reading && requestCount < 5000; requestCount++) {
    receive(encodeFrame(FrameType.open, 2 * requestCount + 2, request));
    if (requestCount % 16 === 15) await nextTurns();
  }
  expect(requestCount).toBeGreaterThan(500);
  expect(requestCount).toBeLessThan(620);
  clock.mockRestore();
  await vi.waitFor(() => expect(socket.reading).toBe(true));
});

describe("holding a link", () => {
  test("waits for the guest's reply, and then blocks both directions", async () => {
    const { link, socket, heard, pong } = connected();
    const held = link.hold(1000);
    expect(heard).toEqual([FrameType.ping]);
    link.open({ method: "clock" });
    expect(heard).toEqual([FrameType.ping]);
    expect([await holds(held), socket.reading]).toEqual([true, true]);
    pong();
    await held;
    expect([heard.length, socket.reading]).toEqual([1, false]);
  });

  test("sends earlier writes first, for any speed of the socket", async () => {
    const { link, socket, drain, heard, pong } = connected();
    socket.room = 3;
    link.open({ method: "clock" });
    const held = link.hold(1000);
    link.open({ method: "power_off" });
    for (let turn = 0; turn < 100; turn++) {
      socket.room = 3;
      drain();
    }
    expect(heard).toEqual([FrameType.open, FrameType.ping]);
    pong();
    await held;
  });

  test("assigns the reply to an earlier ping to that ping", async () => {
    const { link, socket, pong } = connected();
    const earlier = link.ping(1000);
    const held = link.hold(1000);
    pong();
    await earlier;
    expect([await holds(held), socket.reading]).toEqual([true, true]);
    pong();
    await held;
    expect(socket.reading).toBe(false);
  });

  test("is aborted if the guest does not reply, with nothing lost", async () => {
    const { link, socket, heard } = connected();
    const held = link.hold(20);
    link.open({ method: "clock" });
    await expect(held).rejects.toThrow("20 ms");
    expect([heard, socket.reading]).toEqual([[FrameType.ping, FrameType.open], true]);
    await link.standstill.over;
  });

  test("blocks writers, and releasing it sends all of theirs in order", async () => {
    const { link, heard, pong, socket } = connected();
    const stream = link.open({ method: "exec" });
    const held = link.hold(1000);
    pong();
    await held;
    const written = stream.write(0, new Uint8Array(100_000));
    const later = stream.write(0, new Uint8Array(100_000));
    expect([await holds(written), await holds(later), heard.length]).toEqual([true, true, 2]);
    link.release();
    expect([await written, await later, socket.reading]).toEqual([true, true, true]);
    stream.endChannel(0);
    expect(heard.slice(2, -1).every((type) => type === FrameType.data)).toBe(true);
    expect(heard.at(-1)).toBe(FrameType.eof);
    link.release();
  });

  test("ends with the link: no writer waits forever", async () => {
    const { link, socket, pong } = connected();
    const stream = link.open({ method: "exec" });
    const held = link.hold(1000);
    pong();
    await held;
    const written = stream.write(0, new Uint8Array(1_000_000));
    link.close("the sandbox is ending");
    expect(await written).toBe(false);
    await expect(stream.finished).rejects.toThrow("the sandbox is ending");
    await link.standstill.over;
    expect(socket.ended).toBe(true);
  });

  test("over a device that loses no data only waits for the reply, and counts the time", async () => {
    const { link, socket, heard, pong } = connected(NO_QUIRKS);
    const held = link.hold(1000);
    expect(await holds(held)).toBe(true);
    pong();
    await held;
    link.open({ method: "clock" });
    expect([heard, socket.reading, link.standstill.times]).toEqual([[FrameType.ping, FrameType.open], true, 1]);
    link.release();
    await link.standstill.over;
  });

  test("fails for a link that has ended", async () => {
    const { link } = connected();
    link.close("gone");
    await expect(link.hold(1000)).rejects.toThrow("gone");
    await link.standstill.over;
  });
});
