/** Output of commands as text for a model: bounded, with the omitted parts and how to read them. */
import { textOf } from "../../core/text.ts";

export const HEAD_BYTES = 4 * 1024;
export const TAIL_BYTES = 12 * 1024;
/** Longest text of a response as JSON: control characters take six bytes each there. */
const MAX_ESCAPED = 36_000;

export interface Streams {
  stdout: Buffer;
  stderr: Buffer;
}

/** Output with a middle that may be omitted. */
export interface Ends {
  head: Streams;
  tail: Streams;
  left_out_bytes: number;
}

export const NO_OUTPUT: Streams = { stdout: Buffer.alloc(0), stderr: Buffer.alloc(0) };

export const whole = (streams: Streams): Ends => ({ head: streams, tail: NO_OUTPUT, left_out_bytes: 0 });

export interface OutputText {
  text: string;
  left_out_bytes: number;
  /** Bytes of each stream in the text. */
  shown_bytes: { stdout: number; stderr: number };
}

/** `rest` is the instruction for reading the omitted part. */
export function outputText({ head, tail, left_out_bytes }: Ends, rest: string, bound: boolean): OutputText {
  let kept = { head, tail };
  let left = left_out_bytes;
  for (;;) {
    const gap = left > 0 ? `\n… ${grouped(left)} bytes left out${rest === "" ? "" : `; ${rest}`} …\n` : "";
    const text = shown(kept.head) + gap + shown(kept.tail);
    if (!bound || escaped(text) <= MAX_ESCAPED) {
      const [stdout, stderr] = (["stdout", "stderr"] as const).map(
        (name) => kept.head[name].length + kept.tail[name].length,
      );
      return { text, left_out_bytes: left, shown_bytes: { stdout: stdout ?? 0, stderr: stderr ?? 0 } };
    }
    const less =
      sizeOf(kept.tail) > 0 ? { ...kept, tail: half(kept.tail, lastOf) } : { ...kept, head: half(kept.head, firstOf) };
    left += sizeOf(kept.head) + sizeOf(kept.tail) - sizeOf(less.head) - sizeOf(less.tail);
    kept = less;
  }
}

const sizeOf = ({ stdout, stderr }: Streams) => stdout.length + stderr.length;
const half = ({ stdout, stderr }: Streams, part: typeof firstOf): Streams => ({
  stdout: part(stdout, stdout.length >> 1),
  stderr: part(stderr, stderr.length >> 1),
});

/** Whether an answer may show the whole output. */
export const fits = (streams: Streams): boolean =>
  sizeOf(streams) <= HEAD_BYTES + TAIL_BYTES && escaped(shown(streams)) <= MAX_ESCAPED;

const escaped = (text: string) => Buffer.byteLength(JSON.stringify(text));

/** Standard error follows standard output, under a label. */
function shown({ stdout, stderr }: Streams): string {
  const out = asText("stdout", stdout);
  if (stderr.length === 0) return out;
  return `${out}${out === "" || out.endsWith("\n") ? "" : "\n"}[stderr]\n${asText("stderr", stderr)}`;
}

function asText(name: string, bytes: Buffer): string {
  return textOf(bytes) ?? `[${name} is not UTF-8; base64:]\n${bytes.toString("base64")}`;
}

/** The first bytes, cut between characters. */
export function firstOf(bytes: Buffer, most: number): Buffer {
  if (bytes.length <= most) return bytes;
  let end = most;
  for (let back = 0; back < 3 && end > 0 && isContinuation(bytes[end]); back++) end -= 1;
  return bytes.subarray(0, isContinuation(bytes[end]) ? most : end);
}

/** The last bytes, cut between characters. */
export function lastOf(bytes: Buffer, most: number): Buffer {
  if (bytes.length <= most) return bytes;
  let start = bytes.length - most;
  for (let on = 0; on < 3 && isContinuation(bytes[start]); on++) start += 1;
  return bytes.subarray(start);
}

const isContinuation = (byte: number | undefined) => byte !== undefined && (byte & 0xc0) === 0x80;

/** `1,272,895` */
export const grouped = (count: number) => count.toLocaleString("en-US");
