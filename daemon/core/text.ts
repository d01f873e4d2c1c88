/** UTF-8 decoding of bytes, and JSON without terminal control characters. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of the bytes; null if they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** The same JSON with the control characters escaped that JSON allows in strings and terminals would interpret. */
export function plainJson(json: string): string {
  return json.replace(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
}
