/** Decodes bytes of the API's JSON. Separate from the code that every page loads. */

export function bytesOf(base64: unknown): Uint8Array<ArrayBuffer> {
  return typeof base64 === "string" ? Uint8Array.from(atob(base64), (each) => each.charCodeAt(0)) : new Uint8Array(0);
}
