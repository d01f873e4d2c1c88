/** Unused messages of a screen's server (RFC 6143, section 7.6): they are read and dropped. */
import type { ByteReader } from "./byte-reader.ts";
import { MAX_CUT_TEXT_BYTES, RfbError } from "./limits.ts";

export const Message = { update: 0, colours: 1, bell: 2, cutText: 3 } as const;

const COLOUR_BYTES = 6;

/** Call after reading the message's type. Throws RfbError for an invalid type, or an update. */
export async function dropMessage(reader: ByteReader, type: number): Promise<void> {
  if (type === Message.colours) await dropColours(reader);
  else if (type === Message.cutText) await dropCutText(reader);
  else if (type !== Message.bell) throw new RfbError(`a server may not send messages of type ${type}`);
}

async function dropColours(reader: ByteReader): Promise<void> {
  await reader.skip(3);
  await reader.skip((await reader.u16()) * COLOUR_BYTES);
}

async function dropCutText(reader: ByteReader): Promise<void> {
  await reader.skip(3);
  // The extended kind has a negative length.
  const length = Math.abs((await reader.bytes(4)).readInt32BE());
  if (length > MAX_CUT_TEXT_BYTES) throw new RfbError(`a clipboard of ${length} bytes is too large`);
  await reader.skip(length);
}
