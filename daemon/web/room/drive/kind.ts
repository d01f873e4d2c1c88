/**
 * Type of a file by its first bytes: raster image, text, or bytes. The browser renders only images of these types, which execute nothing.
 */
export type Kind = { is: "picture"; type: string } | { is: "text" } | { is: "bytes" };

const PICTURES: readonly (readonly [type: string, begins: readonly (number | null)[]])[] = [
  ["image/png", [0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]],
  ["image/jpeg", [0xff, 0xd8, 0xff]],
  ["image/gif", [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", [0x52, 0x49, 0x46, 0x46, null, null, null, null, 0x57, 0x45, 0x42, 0x50]],
];

/** `content`: as text, null if it is not text. */
export function kindOf(bytes: Uint8Array, content: string | null): Kind {
  for (const [type, begins] of PICTURES) {
    if (begins.every((byte, n) => byte === null || bytes[n] === byte)) return { is: "picture", type };
  }
  return content !== null && !content.includes("\u0000") ? { is: "text" } : { is: "bytes" };
}
