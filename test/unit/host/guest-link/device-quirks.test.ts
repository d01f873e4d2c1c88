/** Quirks of a vsock device are named in one place, worked around by version, and demonstrated by a test. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { deviceArgv, makeVhostUserTransport } from "../../../../daemon/host/guest-link/transports/vhost-user.ts";
import { SocketTransport } from "../../../../guest-agent/socket-link.ts";
import {
  DEVICE_BUFFER_BYTES,
  DEVICE_QUIRKS,
  type DeviceQuirk,
  MAX_WRITE_BYTES,
  NO_QUIRKS,
  quirksOf,
} from "../../../../shared/agent-protocol/device-quirks.ts";

const ALL = Object.keys(DEVICE_QUIRKS) as DeviceQuirk[];

test.each(ALL)("%s: its workarounds name it, and its test demonstrates it", (quirk) => {
  const { around, test: shown } = DEVICE_QUIRKS[quirk];
  for (const file of [...around, shown])
    expect([file, readFileSync(file, "utf8").includes(quirk)]).toEqual([file, true]);
});

test("the kernel's device has none, one of an unknown version all", () => {
  expect(ALL.filter(NO_QUIRKS)).toEqual([]);
  expect(ALL.filter(quirksOf(null))).toEqual(ALL);
  expect(ALL.filter(quirksOf("0.3.0"))).toEqual(ALL);
});

test("from the version that fixes one, and in no earlier one, there is no workaround", () => {
  const mended = (version: string | null) => quirksOf(version, { end_untold: { mended: "0.10.0" } })("end_untold");
  expect(["0.3.0", "0.9.9", "0.10", "unreadable", null].map(mended)).toEqual([true, true, false, true, true]);
  expect(["0.10.0", "0.10.1", "0.11.0", "1.0.0"].map(mended)).toEqual([false, false, false, false]);
});

test("split_packets_lost: an agent writes no more per call than one descriptor holds, whole and in order", async () => {
  const writes: number[] = [];
  const received: Uint8Array[] = [];
  let room = Number.POSITIVE_INFINITY;
  const transport = new SocketTransport();
  transport.open({
    write: (bytes: Uint8Array) => {
      const taken = Math.min(bytes.byteLength, room);
      writes.push(bytes.byteLength);
      received.push(bytes.slice(0, taken));
      room -= taken;
      return taken;
    },
    end: () => 0,
  } as unknown as Parameters<SocketTransport["open"]>[0]);
  const sent = [100_000, 1, MAX_WRITE_BYTES, MAX_WRITE_BYTES + 1].map((length, index) =>
    new Uint8Array(length).map((_, at) => (at * 7 + index) % 251),
  );
  for (const bytes of sent.slice(0, 2)) expect(transport.write(bytes)).toBeUndefined();
  room = 40_000;
  const waiting = sent.slice(2).map((bytes) => transport.write(bytes));
  room = Number.POSITIVE_INFINITY;
  transport.flush();
  await Promise.all(waiting);
  expect(Math.max(...writes)).toBe(MAX_WRITE_BYTES);
  expect(Buffer.concat(received).equals(Buffer.concat(sent))).toBe(true);
});

test("wedged_by_early_dial: a host only listens for its guests, and never dials one", () => {
  const transport = makeVhostUserTransport("vhost-device-vsock", null, 1016);
  expect(Object.keys(transport).sort()).toEqual(["adopt", "device_file", "firstFree", "kind", "open"]);
});

test("small_buffer, siblings_meet: each device has enough buffer for a guest's messages, and its own group", () => {
  const address = {
    sandbox_id: "sbx_1",
    guest_cid: 9100,
    device_socket: "d",
    guest_socket: "g",
    log_file: "l",
    users: null,
  };
  const argv = deviceArgv("vhost-device-vsock", address);
  expect(argv[argv.indexOf("--tx-buffer-size") + 1]).toBe(String(DEVICE_BUFFER_BYTES));
  expect(argv[argv.indexOf("--groups") + 1]).toBe("sbx_1");
});
