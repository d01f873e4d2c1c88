/** Piped standard input. */

export function stdinParts(): AsyncIterable<Uint8Array> {
  return process.stdin as AsyncIterable<Uint8Array>;
}

export async function stdinBytes(): Promise<Buffer> {
  const parts: Uint8Array[] = [];
  for await (const part of stdinParts()) parts.push(part);
  return Buffer.concat(parts);
}
