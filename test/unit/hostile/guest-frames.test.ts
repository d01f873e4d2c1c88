/** Reads of a guest's connection that are full of small frames, and the longest turn of the event loop during them. */
import type { Socket } from "bun";
import { expect, test } from "vitest";
import { linkSocket } from "../../../daemon/host/guest-link/link-socket.ts";
import { quirksOf } from "../../../shared/agent-protocol/device-quirks.ts";
import { encodeFrame, FrameType } from "../../../shared/agent-protocol/frame.ts";
import { HOST_PORT } from "../../../shared/agent-protocol/messages.ts";
import { boundOf, longestTurn } from "../../harness/event-loop/longest-turn.ts";

const MAX_MS = 60;

test("512 KiB of the smallest frames in one read take turns of a few milliseconds, before the end event", async () => {
  const socket = { reading: true, write: (bytes: Uint8Array) => bytes.byteLength, end: () => {} };
  const paused = {
    ...socket,
    pause: () => {
      socket.reading = false;
    },
    resume: () => {
      socket.reading = true;
    },
  };
  const { link, receive, end } = linkSocket(
    paused as unknown as Socket<unknown>,
    { to: HOST_PORT, from: null },
    quirksOf(null),
  );
  link.believe();
  const frame = encodeFrame(FrameType.pong, 0, new Uint8Array(0));
  const read = new Uint8Array(512 * 1024 - ((512 * 1024) % frame.byteLength) + 4);
  for (let at = 0; at + frame.byteLength <= read.byteLength; at += frame.byteLength) read.set(frame, at);
  // Half a frame at its end, which the next read completes.
  const [half, rest] = [frame.subarray(0, 4), frame.subarray(4)];
  read.set(half, read.byteLength - 4);
  const answered = link.ping(10_000);
  const longest = await longestTurn(async () => {
    receive(read);
    expect(socket.reading).toBe(false);
    // Bytes that had been read before it was paused.
    receive(rest);
    receive(encodeFrame(FrameType.ping, 0, new Uint8Array(0)));
    end("the socket has ended");
    await link.closed;
  });
  await answered;
  expect(longest).toBeLessThan(boundOf(MAX_MS));
});
