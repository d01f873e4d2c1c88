/** WebSocket frames of servers in guests, and ours to them. */
import fc from "fast-check";
import { expect, test } from "vitest";
import {
  encodeFrame,
  type Message,
  Opcode,
  readMessages,
  SocketBreach,
} from "../../../../daemon/domain/ports/websocket/frames.ts";
import { ByteReader } from "../../../../daemon/wire/byte-reader.ts";
import { BadMessage } from "../../../../daemon/wire/http1/bad-message.ts";

const MOST = 1000;

async function* once(bytes: Uint8Array): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.byteLength; at += 5) yield bytes.subarray(at, at + 5);
}

/** Messages until the bytes end, and why they ended. */
async function read(...frames: (number[] | Uint8Array)[]): Promise<{ messages: Message[]; end: Error }> {
  const messages: Message[] = [];
  const bytes = Buffer.concat(frames.map((each) => Uint8Array.from(each)));
  try {
    for await (const message of readMessages(new ByteReader(once(bytes)), MOST)) messages.push(message);
    throw new Error("it did not end");
  } catch (error) {
    return { messages, end: error as Error };
  }
}

const server = (first: number, payload: string) => [first, payload.length, ...Buffer.from(payload)];
const shown = ({ messages }: { messages: Message[] }) =>
  messages.map(({ opcode, payload }) => [opcode, Buffer.from(payload).toString()]);

test("fragments become one message, with control frames between them", async () => {
  const received = await read(
    server(0x01, "he"),
    server(0x89, "p"),
    server(0x00, "l"),
    server(0x80, "lo"),
    server(0x82, ""),
  );
  expect(shown(received)).toEqual([
    [Opcode.ping, "p"],
    [Opcode.text, "hello"],
    [Opcode.binary, ""],
  ]);
  expect(received.end).toBeInstanceOf(BadMessage);
});

test.each<[string, number[][], number]>([
  ["reserved bits", [server(0xc1, "a")], 1002],
  ["a mask", [[0x81, 0x81, 0, 0, 0, 0, 0x61]], 1002],
  ["an unknown opcode", [server(0x83, "a")], 1002],
  ["a part of nothing", [server(0x80, "a")], 1002],
  ["a message within a message", [server(0x01, "a"), server(0x81, "b")], 1002],
  ["a control frame in parts", [server(0x09, "a")], 1002],
  ["a large control frame", [[0x89, 126, 0, 126]], 1002],
  ["a message that is too large", [[0x82, 126, 0x03, 0xe9]], 1009],
  ["a length beyond all", [[0x82, 127, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]], 1009],
  [
    "parts that are too large together",
    [
      [0x02, 126, 0x03, 0xe8, ...Array(1000).fill(0)],
      [0x80, 1, 0],
    ],
    1009,
  ],
])("%s ends the connection", async (_, frames, code) => {
  const { end } = await read(...frames);
  expect([end instanceof SocketBreach, (end as SocketBreach).code]).toEqual([true, code]);
});

test("a message of many fragments is buffered while it is unfinished, up to the limit", async () => {
  const parts = [server(0x02, "a"), ...Array<number[]>(98).fill(server(0x00, "b")), server(0x80, "c")];
  const holding = async (most: number) => {
    let [held, highest] = [0, 0];
    const hold = (bytes: number) => {
      if (bytes > 0 && held + bytes > most) return false;
      held += bytes;
      highest = Math.max(highest, held);
      return true;
    };
    const reader = new ByteReader(once(Buffer.concat(parts.map((each) => Uint8Array.from(each)))));
    let size = 0;
    const end: unknown = await (async () => {
      for await (const message of readMessages(reader, MOST, hold)) size += message.payload.byteLength;
    })().catch((error: unknown) => error);
    return { size, held, highest, code: end instanceof SocketBreach ? end.code : null };
  };
  const free = await holding(MOST);
  expect(free).toMatchObject({ size: 100, held: 0, code: null });
  expect([free.highest >= 100, free.highest <= 400]).toEqual([true, true]);
  expect(await holding(50)).toMatchObject({ size: 0, held: 0, code: 1013 });
});

test("every fragment is charged, including empty ones", async () => {
  let reads = 0;
  const pay = (more: number) => {
    reads += more;
    return null;
  };
  async function* parts(): AsyncGenerator<Uint8Array> {
    yield Uint8Array.from([0x01, 0]);
    for (let part = 0; part < 1000; part++) yield Uint8Array.from([0x00, 0]);
  }
  const messages = readMessages(new ByteReader(parts(), pay), MOST);
  await expect(messages.next()).rejects.toThrow(BadMessage);
  expect(reads).toBeGreaterThan(900);
});

test("sent frames are masked, and of the shortest form", () => {
  for (const [size, head] of [
    [0, [0x82, 0x80]],
    [125, [0x82, 0xfd]],
    [126, [0x82, 0xfe, 0, 126]],
    [65_535, [0x82, 0xfe, 0xff, 0xff]],
    [65_536, [0x82, 0xff, 0, 0, 0, 0, 0, 1, 0, 0]],
  ] as const) {
    const payload = new Uint8Array(size).fill(7);
    const frame = encodeFrame(Opcode.binary, payload);
    expect([...frame.subarray(0, head.length)]).toEqual([...head]);
    const mask = frame.subarray(head.length, head.length + 4);
    const body = frame.subarray(head.length + 4).map((byte, index) => byte ^ (mask[index & 3] ?? 0));
    expect(Buffer.from(body).equals(payload)).toBe(true);
  }
});

test("random bytes end in a known error", async () => {
  const check = async (bytes: Uint8Array) => {
    const { end } = await read(bytes);
    expect(end instanceof SocketBreach || end instanceof BadMessage).toBe(true);
  };
  await fc.assert(fc.asyncProperty(fc.uint8Array({ maxLength: 64 }), check), { numRuns: 3000 });
});
