/** Messages of an RFB 3.8 client (RFC 6143, section 7.5), and the head of a recording of a screen. */
import type { Rectangle } from "./frame.ts";

export const VERSION_LINE = "RFB 003.008\n";
export const SECURITY_NONE = 1;

/** Encodings of rectangles. Only raw has pixels: drawing costs a server as many bytes. */
export const Encoding = {
  raw: 0,
  /** A new size. The extended kind is not requested: Xvnc sends it at every request, in a separate update. */
  desktopSize: -223,
  /** Position of the pointer: a rectangle of no size. Defined by VMware; Xvnc has it. */
  pointerPosition: 0x574d5666,
} as const;

/** The extended clipboard: a server that supports it first announces that text was copied. Xvnc has it. */
export const EXTENDED_CLIPBOARD = -1063131698;
/** Bits of that extension: text, and the client's capabilities. */
const Clip = { text: 1, capabilities: 1 << 24, hearsOfIt: 1 << 27 } as const;

/** Buttons by their bit in a pointer event. */
export const Button = { left: 1, middle: 2, right: 4, up: 8, down: 16, toLeft: 32, toRight: 64 } as const;

/** 32 bits, little endian, red first: the byte order of a frame. */
export function setPixelFormat(): Buffer {
  const message = Buffer.alloc(20);
  message.writeUInt8(32, 4);
  message.writeUInt8(24, 5);
  message.writeUInt8(0, 6);
  message.writeUInt8(1, 7);
  for (const [place, shift] of [0, 8, 16].entries()) {
    message.writeUInt16BE(255, 8 + place * 2);
    message.writeUInt8(shift, 14 + place);
  }
  return message;
}

/** The server's ServerInit (section 7.3.2) for players of a recording in this pixel format. */
export function serverInit({ width, height }: { width: number; height: number }): Buffer {
  const name = Buffer.from("recording", "latin1");
  const head = Buffer.alloc(4);
  head.writeUInt16BE(width, 0);
  head.writeUInt16BE(height, 2);
  const length = Buffer.alloc(4);
  length.writeUInt32BE(name.byteLength);
  return Buffer.concat([head, setPixelFormat().subarray(4), length, name]);
}

export function setEncodings(encodings: readonly number[]): Buffer {
  const message = Buffer.alloc(4 + encodings.length * 4);
  message.writeUInt8(2, 0);
  message.writeUInt16BE(encodings.length, 2);
  for (const [at, encoding] of encodings.entries()) message.writeInt32BE(encoding, 4 + at * 4);
  return message;
}

/**
 * After that extension was named: declares a client that accepts no clipboard. The server still announces that text was copied, but not its
 * content.
 */
export function takeNoClipboard(): Buffer {
  const message = Buffer.alloc(16);
  message.writeUInt8(6, 0);
  message.writeInt32BE(-8, 4);
  message.writeUInt32BE(Clip.capabilities | Clip.hearsOfIt | Clip.text, 8);
  // The size limit for unrequested text is zero: the last four bytes stay 0.
  return message;
}

/** `incremental`: the server responds only after a change. */
export function updateRequest(incremental: boolean, { x, y, width, height }: Rectangle): Buffer {
  const message = Buffer.alloc(10);
  message.writeUInt8(3, 0);
  message.writeUInt8(incremental ? 1 : 0, 1);
  message.writeUInt16BE(x, 2);
  message.writeUInt16BE(y, 4);
  message.writeUInt16BE(width, 6);
  message.writeUInt16BE(height, 8);
  return message;
}

export function keyEvent(keysym: number, isDown: boolean): Buffer {
  const message = Buffer.alloc(8);
  message.writeUInt8(4, 0);
  message.writeUInt8(isDown ? 1 : 0, 1);
  message.writeUInt32BE(keysym, 4);
  return message;
}

/** `buttons` are all buttons that are pressed. */
export function pointerEvent(x: number, y: number, buttons: number): Buffer {
  const message = Buffer.alloc(6);
  message.writeUInt8(5, 0);
  message.writeUInt8(buttons, 1);
  message.writeUInt16BE(x, 2);
  message.writeUInt16BE(y, 4);
  return message;
}
