/** Owns taking in an export as it comes, up to what a page may hold. */

/** What a tab keeps in its memory for a file. */
export const MOST_BYTES = 50 * 1024 ** 2;

export type Collected =
  | { is: "whole"; parts: Uint8Array<ArrayBuffer>[]; bytes: number }
  | { is: "too-long" | "broken" };

/** The service says at its end that an export broke off; one that is cut within a line is broken, too. */
export async function collect(
  stream: ReadableStream<Uint8Array<ArrayBuffer>> | null,
  most: number,
  tell: (bytes: number) => void,
): Promise<Collected> {
  const parts: Uint8Array<ArrayBuffer>[] = [];
  let bytes = 0;
  const reader = stream?.getReader();
  for (;;) {
    const next = await reader?.read().catch(() => "broken" as const);
    if (next === "broken") return { is: "broken" };
    if (!next || next.done) break;
    bytes += next.value.byteLength;
    if (bytes > most) {
      await reader?.cancel();
      return { is: "too-long" };
    }
    parts.push(next.value);
    tell(bytes);
  }
  return endsWell(parts) ? { is: "whole", parts, bytes } : { is: "broken" };
}

/** Of the last line as much as tells a record from an error. */
const TAIL_BYTES = 300;

function endsWell(parts: readonly Uint8Array[]): boolean {
  let tail = "";
  for (let n = parts.length - 1; n >= 0 && tail.length < TAIL_BYTES; n--) {
    tail = new TextDecoder().decode(parts[n]?.slice(-TAIL_BYTES)) + tail;
  }
  if (tail === "") return true;
  return tail.endsWith("\n") && !(tail.trimEnd().split("\n").at(-1) ?? "").startsWith('{"type":"error"');
}
