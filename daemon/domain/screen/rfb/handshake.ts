/** Handshake with a screen's server: version, security, and the size of the screen. */
import type { ByteReader } from "./byte-reader.ts";
import { MAX_SECURITY_TYPES, MAX_TEXT_BYTES, RfbError, requireSize } from "./limits.ts";
import { SECURITY_NONE, VERSION_LINE } from "./messages.ts";

const PIXEL_FORMAT_BYTES = 16;

/** Throws RfbError if the peer is not an RFB server, requires a password, or has a screen that is too large. */
export async function shakeHands(
  reader: ByteReader,
  write: (bytes: Uint8Array) => Promise<void>,
): Promise<{ width: number; height: number }> {
  const version = (await reader.bytes(VERSION_LINE.length)).toString("latin1");
  const [, major, minor] = /^RFB (\d{3})\.(\d{3})\n$/.exec(version) ?? [];
  if (major === undefined) throw new RfbError("the listening server is not an RFB server");
  if (Number(major) !== 3 || Number(minor) < 8) throw new RfbError("the server does not speak RFB 3.8");
  await write(Buffer.from(VERSION_LINE, "latin1"));
  const count = await reader.u8();
  if (count === 0) throw new RfbError(`the server rejected the connection: ${await readText(reader)}`);
  if (count > MAX_SECURITY_TYPES) throw new RfbError(`the server has ${count} types of security`);
  if (!(await reader.bytes(count)).includes(SECURITY_NONE)) throw new RfbError("the server requires a password");
  await write(Uint8Array.of(SECURITY_NONE));
  if ((await reader.u32()) !== 0) throw new RfbError(`the server rejected the connection: ${await readText(reader)}`);
  // Shared: other clients stay connected.
  await write(Uint8Array.of(1));
  const width = await reader.u16();
  const height = await reader.u16();
  requireSize(width, height);
  await reader.skip(PIXEL_FORMAT_BYTES);
  await readText(reader);
  return { width, height };
}

async function readText(reader: ByteReader): Promise<string> {
  const length = await reader.u32();
  if (length > MAX_TEXT_BYTES) throw new RfbError(`a text of ${length} bytes is longer than ${MAX_TEXT_BYTES}`);
  const text = await reader.bytes(length);
  return text
    .toString("latin1")
    .replace(/[^ -~]/g, "?")
    .slice(0, 200);
}
