/** The host's decoder against any input from a guest: every split of valid frames, and arbitrary bytes. */
import { heapStats } from "bun:jsc";
import fc from "fast-check";
import { describe, expect, test } from "vitest";
import {
  encodeFrame,
  type Frame,
  FrameDecoder,
  FrameError,
  FrameType,
  MAX_PAYLOAD_FROM_GUEST,
  MAX_PAYLOAD_FROM_HOST,
} from "../../shared/agent-protocol/frame.ts";
import { shortOrLong } from "../harness/guests.ts";

type Said = Omit<Frame, "own">;

const FRAMES = shortOrLong("frames for the decoder", 200_000, 1_000_000);
const MIB = 1024 * 1024;

function decode(decoder: FrameDecoder, chunks: Iterable<Uint8Array>): Said[] {
  const frames: Said[] = [];
  // Payloads are in the chunk that they arrived in, or in the decoder until it continues: retained ones are copied, as a link does.
  for (const chunk of chunks) {
    for (const { type, stream, payload } of decoder.push(chunk))
      frames.push({ type, stream, payload: payload.slice() });
  }
  return frames;
}

const encoded = (frames: readonly Said[]) =>
  Buffer.concat(frames.map(({ type, stream, payload }) => encodeFrame(type as FrameType, stream, payload)));

/** The bytes cut at these places, in whatever order they are given. */
function cut(bytes: Uint8Array, at: readonly number[]): Uint8Array[] {
  const places = [0, ...at.map((place) => place % (bytes.length + 1)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
}

function header(length: number, type = 4, stream = 1): Uint8Array {
  const bytes = new Uint8Array(9);
  const view = new DataView(bytes.buffer);
  view.setUint32(0, length);
  view.setUint8(4, type);
  view.setUint32(5, stream);
  return bytes;
}

const frame: fc.Arbitrary<Said> = fc.record({
  type: fc.constantFrom(...Object.values(FrameType)),
  stream: fc.integer({ min: 0, max: 0xffffffff }),
  payload: fc.oneof(fc.uint8Array({ maxLength: 40 }), fc.uint8Array({ minLength: 300, maxLength: 5000, size: "max" })),
});
describe("any sequence of frames", { timeout: 30_000 }, () => {
  test("is decoded as encoded, however its bytes are split", () => {
    const splits = fc.array(fc.nat({ max: 100_000 }), { maxLength: 60 });
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 20 }), splits, fc.boolean(), (frames, at, keepsRoom) => {
        const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST, keepsRoom);
        const bytes = encoded(frames);
        const seen = decode(decoder, cut(bytes, at));
        expect([seen.length, encoded(seen).equals(bytes)]).toEqual([frames.length, true]);
      }),
      { numRuns: 300 },
    );
  });

  test("uses reusable memory if the decoder keeps it, and is then not owned by its reader", () => {
    const bytes = encoded([1, 2].map((stream) => ({ type: FrameType.data, stream, payload: new Uint8Array(5000) })));
    const places = (keepsRoom: boolean) => {
      const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST, keepsRoom);
      const frames = cut(bytes, [3000, 8000]).flatMap((chunk) => [...decoder.push(chunk)]);
      return [frames[0]?.payload.buffer === frames[1]?.payload.buffer, ...frames.map(({ own }) => own)];
    };
    expect([places(true), places(false)]).toEqual([
      [true, false, false],
      [false, true, true],
    ]);
  });

  test("is decoded as encoded, byte by byte", () => {
    fc.assert(
      fc.property(fc.array(frame, { maxLength: 5 }), (frames) => {
        const bytes = encoded(frames);
        const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST);
        expect(encoded(decode(decoder, cut(bytes, [...bytes.keys()]))).equals(bytes)).toBe(true);
      }),
      { numRuns: 50 },
    );
  });

  test("that is truncated yields the complete frames and retains the rest", () => {
    fc.assert(
      fc.property(fc.array(frame, { minLength: 1, maxLength: 5 }), fc.nat(), (frames, at) => {
        const bytes = encoded(frames);
        const end = at % bytes.length;
        const seen = decode(new FrameDecoder(MAX_PAYLOAD_FROM_GUEST), [bytes.subarray(0, end)]);
        const whole = encoded(frames.slice(0, seen.length));
        expect(encoded(seen).equals(whole)).toBe(true);
        expect(whole.length).toBeLessThanOrEqual(end);
        expect(encoded(frames.slice(0, seen.length + 1)).length).toBeGreaterThan(end);
      }),
    );
  });
});

describe("a frame length", () => {
  test("is accepted up to the largest frame, and not above, for both sides' limits", () => {
    for (const limit of [MAX_PAYLOAD_FROM_GUEST, MAX_PAYLOAD_FROM_HOST]) {
      const largest = encodeFrame(FrameType.data, 7, new Uint8Array(limit).fill(1));
      const [whole] = decode(new FrameDecoder(limit), [largest]);
      expect(whole?.payload.length).toBe(limit);
      expect(() => decode(new FrameDecoder(limit), [header(limit + 6)])).toThrow(FrameError);
    }
  });

  test.each([0, 1, 4, MAX_PAYLOAD_FROM_GUEST + 6, 0x7fffffff, 0xffffffff])(
    "of %i is rejected by the header alone",
    (length) => {
      for (const chunks of [[header(length)], cut(header(length), [1, 2, 3, 4, 5, 6, 7, 8])]) {
        expect(() => decode(new FrameDecoder(MAX_PAYLOAD_FROM_GUEST), chunks)).toThrow(FrameError);
      }
    },
  );

  test("that is invalid is reported after the preceding valid frames", () => {
    const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST);
    const seen: number[] = [];
    const right = encodeFrame(FrameType.ping, 0, new Uint8Array(0));
    expect(() => {
      for (const { type } of decoder.push(Buffer.concat([right, right, header(3)]))) seen.push(type);
    }).toThrow(FrameError);
    expect(seen).toEqual([FrameType.ping, FrameType.ping]);
  });

  test("that announces much allocates no more than the limit until the data arrive", () => {
    Bun.gc(true);
    const before = heapStats().extraMemorySize;
    const decoders = Array.from({ length: 200 }, () => {
      const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST);
      expect(decode(decoder, [header(MAX_PAYLOAD_FROM_GUEST + 5), new Uint8Array(10)])).toEqual([]);
      return decoder;
    });
    Bun.gc(true);
    const each = (heapStats().extraMemorySize - before) / decoders.length;
    expect(each).toBeGreaterThan(MAX_PAYLOAD_FROM_GUEST / 2);
    expect(each).toBeLessThan(MAX_PAYLOAD_FROM_GUEST + 4096);
  });
});

/** Small, fast and the same in every run. */
function numbers(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    return Math.floor((state / 2 ** 32) * below);
  };
}

function measure(work: () => number): { count: number; ms: number; grown: number } {
  Bun.gc(true);
  const before = process.memoryUsage().rss;
  const startedAt = performance.now();
  const count = work();
  const ms = performance.now() - startedAt;
  Bun.gc(true);
  return { count, ms, grown: (process.memoryUsage().rss - before) / MIB };
}

describe("a million frames", { timeout: 60_000 }, () => {
  test("that are valid are all decoded, in bounded memory", () => {
    const next = numbers(1);
    const { count, ms, grown } = measure(() => {
      const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST);
      let seen = 0;
      for (let batch = 0; batch < FRAMES / 1000; batch++) {
        const frames = Array.from({ length: 1000 }, () =>
          encodeFrame(FrameType.data, next(2 ** 32), new Uint8Array(next(64))),
        );
        for (const chunk of cut(
          Buffer.concat(frames),
          Array.from({ length: 20 }, () => next(50_000)),
        )) {
          for (const { payload } of decoder.push(chunk)) seen += Number(payload.length < 64);
        }
      }
      return seen;
    });
    console.log(
      `${count} frames decoded in ${Math.round(ms)} ms, ${Math.round(count / ms)} a ms, ${grown.toFixed(1)} MiB more`,
    );
    expect(count).toBe(FRAMES);
    expect(grown).toBeLessThan(64);
  });

  test("of random bytes end in an error or in frames within the limit", () => {
    const next = numbers(2);
    let refused = 0;
    const { count, ms, grown } = measure(() => {
      let seen = 0;
      const words = new Uint32Array(16);
      const buffer = new Uint8Array(words.buffer);
      for (let attempt = 0; attempt < FRAMES; attempt++) {
        const decoder = new FrameDecoder(MAX_PAYLOAD_FROM_GUEST);
        for (let index = 0; index < words.length; index++) words[index] = next(2 ** 32);
        // Mostly lengths that might be right: pure noise never gets past the first four bytes.
        if (attempt % 8 > 0) buffer.set([0, 0, 0, next(40)]);
        try {
          for (const { payload } of decoder.push(buffer.subarray(0, 1 + next(63)))) {
            seen++;
            if (payload.length > MAX_PAYLOAD_FROM_GUEST) throw new Error("over the limit");
          }
        } catch (error) {
          if (!(error instanceof FrameError)) throw error;
          refused++;
        }
      }
      return seen;
    });
    console.log(
      `${FRAMES} random inputs in ${Math.round(ms)} ms: ${refused} refused, ${count} frames, ${grown.toFixed(1)} MiB more`,
    );
    expect(refused).toBeGreaterThan(FRAMES / 8);
    expect(count).toBeGreaterThan(FRAMES / 8);
    expect(grown).toBeLessThan(64);
  });
});
