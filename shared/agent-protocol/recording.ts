/**
 * Format of a screen recording: consecutive pieces, each a header of eight bytes and bytes of the screen's server.
 *
 *     ms since its beginning, u32 │ length, u32 │ bytes
 *
 * The first piece is the server's ServerInit (RFC 6143, section 7.3.2), every other one a complete FramebufferUpdate. Pixels are 32 bits,
 * little endian, red first; rectangles are Raw, ZRLE or a new size.
 */

/** The first argument with which the agent's program plays a recording, for making a film of it. */
export const FILM_COMMAND = "film";

export const PIECE_HEADER_BYTES = 8;
/**
 * Maximum size of one update, which the host buffers before writing it. A 1920 by 1080 screen fits uncompressed, larger screens compressed.
 */
export const MAX_PIECE_BYTES = 9 * 1024 * 1024;

export const RECORDED = { raw: 0, zrle: 16, desktopSize: -223 } as const;

export function pieceHeader(ms: number, length: number): Uint8Array {
  const header = new DataView(new ArrayBuffer(PIECE_HEADER_BYTES));
  header.setUint32(0, ms);
  header.setUint32(4, length);
  return new Uint8Array(header.buffer);
}
