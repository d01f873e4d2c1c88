/** Text from bytes, if they are UTF-8; and JSON that cannot steer a terminal. */
const decoder = new TextDecoder("utf-8", { fatal: true, ignoreBOM: true });

/** The text of UTF-8 bytes, or null when they are not UTF-8. */
export function textOf(bytes: Uint8Array): string | null {
  try {
    return decoder.decode(bytes);
  } catch {
    return null;
  }
}

/** The same JSON without the control characters that JSON allows in its strings, and that a terminal would obey. */
export function plainJson(json: string): string {
  return json.replace(/[\u007f-\u009f]/g, (c) => `\\u00${c.charCodeAt(0).toString(16)}`);
}
