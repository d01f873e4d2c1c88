/** DNS messages as far as the guest's resolver needs them: parses one question and writes its answer (RFC 1035). */
import type { DnsRecord } from "../../shared/agent-protocol/messages.ts";

export const RecordType = { A: 1, MX: 15, TXT: 16, AAAA: 28, SRV: 33 } as const;
export const ResponseCode = { ok: 0, formatError: 1, failed: 2, noSuchName: 3, notImplemented: 4, refused: 5 } as const;

const CLASS_INTERNET = 1;
const HEADER_BYTES = 12;
const POINTER_TO_QUESTION = 0xc00c;
const TRUNCATED = 0x0200;
const OPT = 41;
const UDP_BYTES = { least: 512, most: 4096 } as const;
/** Short, so that a program that caches answers queries again soon. */
const TTL_SECONDS = 60;

export interface Question {
  id: number;
  /** In lower case, without the trailing dot. */
  name: string;
  type: number;
  /** The question as it was received, to be echoed. */
  bytes: Uint8Array;
  recursionDesired: boolean;
  /** The largest UDP answer that the client accepts (RFC 6891, 6.2.3). */
  udpBytes: number;
}

/** Reads a query with one question. Null if the message is not one: there is nothing to answer. */
export function readQuestion(message: Uint8Array): Question | null {
  if (message.byteLength < HEADER_BYTES) return null;
  const view = new DataView(message.buffer, message.byteOffset, message.byteLength);
  const flags = view.getUint16(2);
  const isQuery = (flags & 0xf800) === 0;
  if (!isQuery || view.getUint16(4) !== 1) return null;
  const labels: string[] = [];
  let offset = HEADER_BYTES;
  for (;;) {
    const length = message[offset];
    // Two high bits mark a compression pointer, which the first name of a message does not need.
    if (length === undefined || length > 63) return null;
    offset++;
    if (length === 0) break;
    const label = message.subarray(offset, offset + length);
    if (label.byteLength < length) return null;
    // Host names contain only printable characters.
    if (label.some((byte) => byte <= 0x20 || byte >= 0x7f || byte === 0x2e)) return null;
    labels.push(String.fromCharCode(...label).toLowerCase());
    offset += length;
  }
  if (offset + 4 > message.byteLength || offset - HEADER_BYTES > 255) return null;
  if (view.getUint16(offset + 2) !== CLASS_INTERNET) return null;
  return {
    id: view.getUint16(0),
    name: labels.join("."),
    type: view.getUint16(offset),
    bytes: message.slice(HEADER_BYTES, offset + 4),
    recursionDesired: (flags & 0x0100) !== 0,
    udpBytes: udpBytesOf(view, offset + 4),
  };
}

/** From an OPT record directly after the question, where clients put it. */
function udpBytesOf(view: DataView, at: number): number {
  const hasOpt = view.byteLength >= at + 5 && view.getUint8(at) === 0 && view.getUint16(at + 1) === OPT;
  return hasOpt ? Math.min(Math.max(view.getUint16(at + 3), UDP_BYTES.least), UDP_BYTES.most) : UDP_BYTES.least;
}

/** The answer with records if it fits the transport, else an empty truncated one, so that the client repeats the query over TCP. */
export function writeRecords(question: Question, records: readonly DnsRecord[], mostBytes: number): Uint8Array {
  const head = writeAnswer(question, ResponseCode.ok, null);
  const bodies = records.map((record) => {
    const data = dataOf(record);
    const begin = new DataView(new ArrayBuffer(12));
    begin.setUint16(0, POINTER_TO_QUESTION);
    begin.setUint16(2, RecordType[record.type]);
    begin.setUint16(4, CLASS_INTERNET);
    begin.setUint32(6, TTL_SECONDS);
    begin.setUint16(10, data.byteLength);
    return Buffer.concat([new Uint8Array(begin.buffer), data]);
  });
  const whole = Buffer.concat([head, ...bodies]);
  const isWhole = whole.byteLength <= mostBytes;
  const message = isWhole ? whole : Buffer.from(head);
  if (isWhole) message.writeUInt16BE(records.length, 6);
  else message.writeUInt16BE(message.readUInt16BE(2) | TRUNCATED, 2);
  return message;
}

/** Names in the data are not compressed (RFC 2782 requires that for SRV). */
function dataOf(record: DnsRecord): Buffer {
  switch (record.type) {
    case "SRV":
      return Buffer.concat([numbersOf(record.priority, record.weight, record.port), nameOf(record.target)]);
    case "MX":
      return Buffer.concat([numbersOf(record.preference), nameOf(record.target)]);
    case "TXT":
      return Buffer.concat(record.texts.map((text) => stringOf(Buffer.from(text))));
  }
}

function numbersOf(...numbers: number[]): Buffer {
  const bytes = Buffer.alloc(2 * numbers.length);
  for (const [index, number] of numbers.entries()) bytes.writeUInt16BE(number & 0xffff, 2 * index);
  return bytes;
}

const stringOf = (bytes: Buffer) => Buffer.concat([Buffer.of(Math.min(bytes.byteLength, 255)), bytes.subarray(0, 255)]);

const nameOf = (name: string) =>
  Buffer.concat([
    ...name.split(".").map((label) => stringOf(Buffer.from(label, "latin1").subarray(0, 63))),
    Buffer.of(0),
  ]);

/** An answer with a response code and an address, if there is one. */
export function writeAnswer(question: Question, code: number, address: number | null): Uint8Array {
  const answerBytes = address === null ? 0 : 16;
  const message = new Uint8Array(HEADER_BYTES + question.bytes.byteLength + answerBytes);
  const view = new DataView(message.buffer);
  view.setUint16(0, question.id);
  // A response, recursion available.
  view.setUint16(2, 0x8080 | (question.recursionDesired ? 0x0100 : 0) | code);
  view.setUint16(4, 1);
  view.setUint16(6, address === null ? 0 : 1);
  message.set(question.bytes, HEADER_BYTES);
  if (address !== null) {
    const at = HEADER_BYTES + question.bytes.byteLength;
    view.setUint16(at, POINTER_TO_QUESTION);
    view.setUint16(at + 2, RecordType.A);
    view.setUint16(at + 4, CLASS_INTERNET);
    view.setUint32(at + 6, TTL_SECONDS);
    view.setUint16(at + 10, 4);
    view.setUint32(at + 12, address);
  }
  return message;
}
