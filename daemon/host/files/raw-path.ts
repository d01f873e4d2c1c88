/**
 * Paths as Linux defines them: bytes, which a guest may choose at will. A raw path holds one byte per character, so that it sorts as bytes
 * do, can be joined like text, and survives names that are not UTF-8.
 */
declare const brand: unique symbol;
export type RawPath = string & { readonly [brand]: "raw" };

export function toRaw(text: string): RawPath {
  return Buffer.from(text, "utf8").toString("latin1") as RawPath;
}

export function fromBytes(bytes: Buffer, start = 0, end = bytes.length): RawPath {
  return bytes.toString("latin1", start, end) as RawPath;
}

/** For people and JSON; bytes that are not UTF-8 become U+FFFD and cannot be converted back. */
export function toText(raw: RawPath): string {
  return Buffer.from(raw, "latin1").toString("utf8");
}

export function joinRaw(directory: RawPath, name: RawPath): RawPath {
  return (directory === HERE ? name : `${directory}/${name}`) as RawPath;
}

/** The directory itself. */
export const HERE = "." as RawPath;
