/** Collects an export of the audit as it arrives, up to the limit of a page. */

/** Memory that a tab may use for a file. */
export const MAX_BYTES = 50 * 1024 ** 2;

export type Collected =
  | { is: "whole"; parts: Uint8Array<ArrayBuffer>[]; bytes: number }
  | { is: "too-long" | "broken" };

/** The service reports at the end that an export was aborted; one that is truncated within a line is broken, too. */
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

/** Enough of the last line to distinguish a record from an error. */
const TAIL_BYTES = 300;

function endsWell(parts: readonly Uint8Array[]): boolean {
  let tail = "";
  for (let n = parts.length - 1; n >= 0 && tail.length < TAIL_BYTES; n--) {
    tail = new TextDecoder().decode(parts[n]?.slice(-TAIL_BYTES)) + tail;
  }
  if (tail === "") return true;
  return tail.endsWith("\n") && !(tail.trimEnd().split("\n").at(-1) ?? "").startsWith('{"type":"error"');
}
