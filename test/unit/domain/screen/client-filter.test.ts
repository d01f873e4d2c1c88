/** Messages that a viewer may send to a screen's server, however its bytes are split. */
import { describe, expect, test } from "vitest";
import { ClientFilter } from "../../../../daemon/domain/screen/rfb/client-filter.ts";
import { RfbError } from "../../../../daemon/domain/screen/rfb/limits.ts";
import {
  EXTENDED_CLIPBOARD,
  keyEvent,
  pointerEvent,
  setEncodings,
  setPixelFormat,
  takeNoClipboard,
  updateRequest,
} from "../../../../daemon/domain/screen/rfb/messages.ts";
import { packed, sizeWish } from "../../../harness/browser/rfb-server.ts";

const AREA = { x: 0, y: 0, width: 64, height: 40 };
const HELLO = packed("RFB 003.008\n", ["u8", 1], ["u8", 0]);
/** A viewer that requests exclusive access sets its last byte: no other viewer is disconnected. */
const HELLO_DRIVES = packed("RFB 003.008\n", ["u8", 1], ["u8", 1]);
/** For a view-only viewer the service declares that it takes no clipboard. */
const HELLO_LOOKS = packed(HELLO_DRIVES, setEncodings([EXTENDED_CLIPBOARD]), takeNoClipboard());
const helloOf = (drives: boolean) => (drives ? HELLO_DRIVES : HELLO_LOOKS);
const clipboard = (length: number, text: string) => packed(["u8", 6], new Uint8Array(3), ["s32", length], text);
const LOOKS = {
  "a pixel format": setPixelFormat(),
  encodings: setEncodings([0, EXTENDED_CLIPBOARD, -223, 7]),
  "a request": updateRequest(true, AREA),
  "updates without asking": packed(["u8", 150], new Uint8Array(9)),
  "a fence": packed(["u8", 248], new Uint8Array(3), ["u32", 1], ["u8", 4], "abcd"),
};
const DRIVES = {
  "a key": keyEvent(0x61, true),
  "the pointer": pointerEvent(3, 4, 1),
  "the pointer with many buttons": packed(["u8", 5], ["u8", 0x81], ["u16", 3], ["u16", 4], ["u8", 1]),
  "a clipboard": clipboard(5, "words"),
  "an extended clipboard": clipboard(-4, "\x10\x00\x00\x01"),
  "a size": sizeWish(800, 600),
  "a scan code": packed(["u8", 255], ["u8", 0], ["u16", 1], ["u32", 0x61], ["u32", 30]),
};
const SHUTDOWN = packed(["u8", 250], ["u8", 0], ["u8", 1], ["u8", 2]);

function passedBy(drives: boolean, bytes: Uint8Array, piece = bytes.byteLength): Buffer {
  const filter = new ClientFilter(drives);
  const passed: Uint8Array[] = [];
  for (let at = 0; at < bytes.byteLength; at += piece) passed.push(filter.take(bytes.subarray(at, at + piece)));
  return Buffer.concat(passed);
}

const ALL = [...Object.values(LOOKS), SHUTDOWN, ...Object.values(DRIVES), ...Object.values(LOOKS)];

describe.each([1, 2, 3, 7, 64, 1000])("in pieces of %i bytes", (piece) => {
  test("a watcher may request pictures, and input is dropped", () => {
    const looks = Buffer.concat([HELLO_LOOKS, ...Object.values(LOOKS), ...Object.values(LOOKS)]);
    expect(passedBy(false, Buffer.concat([HELLO, ...ALL]), piece)).toEqual(looks);
  });

  test("a driver's input passes, except a machine shutdown", () => {
    const drives = Buffer.concat([HELLO_DRIVES, ...ALL.filter((each) => each !== SHUTDOWN)]);
    expect(passedBy(true, Buffer.concat([HELLO, ...ALL]), piece)).toEqual(drives);
  });
});

test.each(Object.entries(DRIVES))("%s of a watcher does not pass, alone or in pieces", (_, message) => {
  expect(passedBy(false, Buffer.concat([HELLO, message]))).toEqual(HELLO_LOOKS);
  expect(passedBy(false, Buffer.concat([HELLO, message]), 1)).toEqual(HELLO_LOOKS);
  expect(passedBy(true, Buffer.concat([HELLO, message]))).toEqual(Buffer.concat([HELLO_DRIVES, message]));
});

test.each<[isLet: boolean, width: number, height: number, monitors?: number]>([
  [true, 320, 200],
  [true, 4096, 4096],
  [true, 2560, 1024, 2],
  [false, 319, 200],
  [false, 320, 199],
  [false, 4097, 1000],
  [false, 1000, 4097],
  [false, 0, 0, 0],
  [false, 65_535, 65_535, 255],
])("that a size passes from a driver is %s of %i by %i", (isLet, width, height, monitors) => {
  const [resize, after] = [sizeWish(width, height, monitors), keyEvent(0x61, true)];
  for (const piece of [1, 7, 10_000]) {
    const expected = [HELLO_DRIVES, ...(isLet ? [resize] : []), after];
    expect(passedBy(true, Buffer.concat([HELLO, resize, after]), piece)).toEqual(Buffer.concat(expected));
    expect(passedBy(false, Buffer.concat([HELLO, resize, after]), piece)).toEqual(HELLO_LOOKS);
  }
});

test.each([{ encodings: [] }, { encodings: [0] }, { encodings: [0, -223, 7] }])(
  "a watcher whose encodings $encodings would include the clipboard is rejected",
  ({ encodings }) => {
    const named = Buffer.concat([HELLO, setEncodings(encodings)]);
    for (const piece of [1, 3, 1000]) {
      expect(() => passedBy(false, named, piece)).toThrow(/ -1063131698$/);
      expect(passedBy(true, named, piece)).toEqual(Buffer.concat([HELLO_DRIVES, setEncodings(encodings)]));
    }
    // Also once it has named another list before.
    expect(() => passedBy(false, Buffer.concat([HELLO, LOOKS.encodings, setEncodings(encodings)]))).toThrow(RfbError);
  },
);

test("each byte of a long message is inspected once", () => {
  const long = packed(HELLO, clipboard(1024 * 1024, "x".repeat(1024 * 1024)), updateRequest(true, AREA));
  for (const drives of [false, true]) {
    const filter = new ClientFilter(drives);
    let passed = 0;
    const startedAt = performance.now();
    for (let at = 0; at < long.byteLength; at++) passed += filter.take(long.subarray(at, at + 1)).byteLength;
    const expected = helloOf(drives).byteLength + 10 + (drives ? 8 + 1024 * 1024 : 0);
    expect([passed, filter.messages]).toEqual([expected, 2]);
    console.log(`1 MiB in single bytes: ${Math.round(performance.now() - startedAt)} ms`);
  }
});

test.each<[string, Uint8Array]>([
  ["another version", packed("RFB 003.003\n")],
  ["no RFB at all", packed("GET / HTTP/1.1\r\n")],
  ["a password", packed("RFB 003.008\n", ["u8", 2])],
  ["an invalid message", packed(HELLO, ["u8", 99])],
  ["a message of another extension", packed(HELLO, ["u8", 255], ["u8", 1])],
  ["too many encodings", packed(HELLO, ["u8", 2], ["u8", 0], ["u16", 2000])],
  ["too large a clipboard", packed(HELLO, clipboard(1024 * 1024 + 1, ""))],
  ["too large an extended clipboard", packed(HELLO, clipboard(-2147483648, ""))],
  ["too large a fence", packed(HELLO, ["u8", 248], new Uint8Array(7), ["u8", 65])],
])("%s is rejected, from a watcher and from a driver", (_, bytes) => {
  for (const drives of [false, true]) expect(() => passedBy(drives, bytes)).toThrow(/a viewer/);
});
