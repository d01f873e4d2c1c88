/** In which packets frames are sent: the quirk split_packets_lost takes those of a size only. Over sockets that keep packets apart. */
import { dlopen } from "bun:ffi";
import { randomBytes } from "node:crypto";
import { afterEach, beforeEach, expect, test } from "vitest";
import * as libc from "../../../guest-agent/libc.ts";
import { MAX_FRAME_BYTES, MAX_WRITE_BYTES } from "../../../shared/agent-protocol/device-quirks.ts";
import { DATA_HEADER_BYTES } from "../../../shared/agent-protocol/frame.ts";

const AF_UNIX = 1;
const SOCK_SEQPACKET = 5;
const MSG_DONTWAIT = 0x40;
const { symbols } = dlopen("libc.so.6", {
  socketpair: { args: ["i32", "i32", "i32", "ptr"], returns: "i32" },
  recv: { args: ["i32", "ptr", "u64", "i32"], returns: "i64" },
});

let ends: [number, number];
beforeEach(() => {
  const both = new Int32Array(2);
  expect(symbols.socketpair(AF_UNIX, SOCK_SEQPACKET, 0, both)).toBe(0);
  ends = [both[0] ?? 0, both[1] ?? 0];
});
afterEach(() => ends.map(libc.close));

/** The packets that have come. */
function received(): Buffer[] {
  const packets: Buffer[] = [];
  for (;;) {
    const packet = Buffer.alloc(MAX_FRAME_BYTES);
    const length = Number(symbols.recv(ends[1], packet, packet.byteLength, MSG_DONTWAIT));
    if (length <= 0) return packets;
    packets.push(packet.subarray(0, length));
  }
}

const IN_A_FRAME = MAX_FRAME_BYTES - DATA_HEADER_BYTES;

test.each([
  1,
  MAX_WRITE_BYTES - DATA_HEADER_BYTES,
  MAX_WRITE_BYTES - DATA_HEADER_BYTES + 1,
  IN_A_FRAME,
  IN_A_FRAME + 1,
  3 * IN_A_FRAME + MAX_WRITE_BYTES,
  libc.MAX_FRAMES * IN_A_FRAME,
])("%i bytes are sent in packets that are all full except a frame's last, in their order", (size) => {
  const frames = Math.ceil(size / IN_A_FRAME);
  const headers = randomBytes(frames * DATA_HEADER_BYTES);
  const bytes = randomBytes(size);
  const expected: Buffer[] = [];
  for (let frame = 0; frame < frames; frame++) {
    const whole = Buffer.concat([
      headers.subarray(frame * DATA_HEADER_BYTES, (frame + 1) * DATA_HEADER_BYTES),
      bytes.subarray(frame * IN_A_FRAME, (frame + 1) * IN_A_FRAME),
    ]);
    for (let at = 0; at < whole.byteLength; at += MAX_WRITE_BYTES) {
      expected.push(whole.subarray(at, at + MAX_WRITE_BYTES));
    }
  }
  const sent = libc.sendFrames(ends[0], headers, DATA_HEADER_BYTES, bytes, MAX_WRITE_BYTES);
  const packets = received();
  // As many packets as there is room for; the received bytes equal the sent ones up to there.
  expect(packets.length).toBeGreaterThan(0);
  expect(packets.map((packet) => packet.byteLength)).toEqual(
    expected.slice(0, packets.length).map((packet) => packet.byteLength),
  );
  expect(Buffer.concat(packets).equals(Buffer.concat(expected.slice(0, packets.length)))).toBe(true);
  expect(sent).toBe(packets.reduce((sum, packet) => sum + packet.byteLength, 0));
});

test("no frame is sent without space, or without a peer", () => {
  const header = new Uint8Array(DATA_HEADER_BYTES);
  const bytes = new Uint8Array(IN_A_FRAME);
  const send = () => libc.sendFrames(ends[0], header, DATA_HEADER_BYTES, bytes, MAX_WRITE_BYTES);
  let most = 1000;
  while (send() > 0 && most-- > 0);
  expect(most).toBeGreaterThan(0);
  libc.close(ends[1]);
  expect(send()).toBe(0);
  ends = [ends[0], libc.pipe().read];
});
