/** Reading a screen's server: however its bytes are cut, and whatever it claims. */
import fc from "fast-check";
import { describe, expect, test, vi } from "vitest";
import { ByteReader } from "../../../../daemon/domain/screen/rfb/byte-reader.ts";
import { Decoder } from "../../../../daemon/domain/screen/rfb/decode.ts";
import { shakeHands } from "../../../../daemon/domain/screen/rfb/handshake.ts";
import { freshAllowances, RfbError } from "../../../../daemon/domain/screen/rfb/limits.ts";
import { greeting, packed, rectangle, shaded, update } from "../../../harness/browser/rfb-server.ts";

async function* inPieces(bytes: Uint8Array, lengths: readonly number[]): AsyncGenerator<Uint8Array> {
  for (let at = 0, turn = 0; at < bytes.byteLength; turn++) {
    const length = lengths[turn % lengths.length] ?? 1;
    yield bytes.subarray(at, at + length);
    at += length;
  }
}

const readerOf = (bytes: Uint8Array, lengths: readonly number[] = [1000]) =>
  new ByteReader(inPieces(bytes, lengths), freshAllowances().reads, "host");
const hands = (bytes: Uint8Array) => shakeHands(readerOf(bytes), async () => {});

/** The remaining frame, and the reason of its end. */
async function decoded(
  bytes: Uint8Array,
  { lengths = [1000], hold = (_bytes: number) => () => {}, size = { width: 8, height: 4 } } = {},
) {
  const decoder = new Decoder(readerOf(bytes, lengths), size, { hold, sizes: freshAllowances().sizes });
  const updates = [];
  for (;;) {
    try {
      updates.push(await decoder.next());
    } catch (error) {
      return { decoder, updates, error };
    }
  }
}

const WHOLE = { x: 0, y: 0, width: 8, height: 4 };

describe("a handshake", () => {
  test("gives the size, and sends the chosen options", async () => {
    const sent: Uint8Array[] = [];
    const size = await shakeHands(readerOf(greeting(640, 480), [3]), async (bytes) => void sent.push(bytes));
    expect(size).toEqual({ width: 640, height: 480 });
    expect(Buffer.concat(sent)).toEqual(packed("RFB 003.008\n", ["u8", 1], ["u8", 1]));
  });

  test.each<[string, Buffer, RegExp]>([
    ["is no RFB", packed("SSH-2.0-OpenSSH\r\n"), /not an RFB server/],
    ["is older", packed("RFB 003.003\n"), /3\.8/],
    ["refuses, with a reason", packed("RFB 003.008\n", ["u8", 0], ["u32", 6], "go\naway".slice(0, 6)), /: go\?awa/],
    ["gives a reason without end", packed("RFB 003.008\n", ["u8", 0], ["u32", 0xffffffff]), /longer than 4096/],
    ["requires a password", packed("RFB 003.008\n", ["u8", 1], ["u8", 2]), /password/],
    ["has too many kinds of security", packed("RFB 003.008\n", ["u8", 255]), /255 types/],
    ["has no screen", greeting(0, 480), /0x480/],
    ["has a screen that is too large", greeting(4097, 480), /4097x480/],
    ["has a name without end", packed(greeting(8, 8).subarray(0, -12), ["u32", 0xffffffff]), /longer than 4096/],
    ["ends", packed("RFB 00"), /ended/],
  ])("with a server that %s is rejected", async (_, bytes, why) => {
    await expect(hands(bytes)).rejects.toThrow(why);
    await expect(hands(bytes)).rejects.toBeInstanceOf(RfbError);
  });
});

describe("updates", () => {
  test("are drawn, for any chunks", async () => {
    const pixels = Uint8Array.from({ length: 8 * 4 * 4 }, (_, at) => at);
    const part = { x: 6, y: 2, width: 2, height: 2 };
    const bytes = packed(
      update(rectangle(WHOLE, 0, pixels)),
      ["u8", 2],
      packed(["u8", 3], new Uint8Array(3), ["u32", 5], "hello"),
      packed(["u8", 1], ["u8", 0], ["u16", 0], ["u16", 2], new Uint8Array(12)),
      update(shaded(part, 200), rectangle({ x: 5, y: 1, width: 0, height: 0 }, 0x574d5666)),
    );
    const expected = pixels.slice();
    for (const row of [2, 3]) expected.fill(200, (row * 8 + 6) * 4, (row * 8 + 8) * 4);
    await fc.assert(
      fc.asyncProperty(fc.array(fc.integer({ min: 1, max: 40 }), { minLength: 1, maxLength: 12 }), async (lengths) => {
        const { decoder, updates } = await decoded(bytes, { lengths });
        expect(Buffer.from(decoder.frame.pixels)).toEqual(Buffer.from(expected));
        expect(updates).toEqual([
          { drawn: 32, hasAwaited: true, isNewFrame: false },
          { drawn: 4, hasAwaited: false, isNewFrame: false },
        ]);
        expect(decoder.pointer).toEqual({ x: 5, y: 1 });
      }),
      { numRuns: 60 },
    );
  });

  test("may be preceded by clipboards of both kinds, which are dropped", async () => {
    const clipboard = (length: number, bytes: Uint8Array) =>
      packed(["u8", 3], new Uint8Array(3), ["s32", length], bytes);
    const bytes = packed(clipboard(3, new Uint8Array(3)), clipboard(-12, new Uint8Array(12)), update(shaded(WHOLE, 9)));
    const { updates } = await decoded(bytes, { lengths: [1, 5] });
    expect(updates).toMatchObject([{ drawn: 32 }]);
  });

  test("with a new size start a new frame, and release the old one's memory", async () => {
    const held: number[] = [];
    const hold = (bytes: number) => {
      held.push(bytes);
      return () => {
        held.splice(held.indexOf(bytes), 1);
      };
    };
    const resized = update(shaded(WHOLE, 9), rectangle({ x: 0, y: 0, width: 4, height: 2 }, -223));
    const { decoder, updates } = await decoded(resized, { hold });
    expect(updates).toEqual([{ drawn: 0, hasAwaited: false, isNewFrame: true }]);
    expect(decoder.frame).toEqual({ width: 4, height: 2, pixels: new Uint8Array(32) });
    expect(held).toEqual([32]);
    decoder.close();
    expect(held).toEqual([]);
  });

  test("that arrive after the end hold no memory", async () => {
    let held = 0;
    const hold = (bytes: number) => {
      held += bytes;
      return () => {
        held -= bytes;
      };
    };
    const reader = readerOf(update(rectangle({ x: 0, y: 0, width: 4, height: 2 }, -223)));
    const decoder = new Decoder(reader, { width: 8, height: 4 }, { hold, sizes: freshAllowances().sizes });
    decoder.close();
    expect(held).toBe(0);
    await expect(decoder.next()).rejects.toThrow("ended");
    expect(held).toBe(0);
  });

  test("that close their own connection for lack of memory hold none", async () => {
    let held = 0;
    const hold = (bytes: number) => {
      // To make room for the new frame.
      decoder?.close();
      held += bytes;
      return () => {
        held -= bytes;
      };
    };
    const reader = readerOf(update(rectangle({ x: 0, y: 0, width: 4, height: 2 }, -223)));
    let decoder: Decoder | null = null;
    decoder = new Decoder(reader, { width: 8, height: 4 }, { hold, sizes: freshAllowances().sizes });
    expect(held).toBe(128);
    await expect(decoder.next()).rejects.toThrow("ended");
    expect(held).toBe(0);
  });

  test("are not drawn after the end, and the frame is released", async () => {
    const { sizes, reads } = freshAllowances();
    const rest = Promise.withResolvers<void>();
    async function* slowly() {
      const bytes = update(shaded(WHOLE, 9));
      yield bytes.subarray(0, 60);
      await rest.promise;
      yield bytes.subarray(60);
    }
    const decoder = new Decoder(new ByteReader(slowly(), reads, "host"), WHOLE, { hold: () => () => {}, sizes });
    const drawn = decoder.next();
    decoder.close();
    expect(() => decoder.frame).toThrow("ended");
    rest.resolve();
    await expect(drawn).rejects.toThrow("ended");
  });

  test("without content cost no more than their bytes", async () => {
    const none = rectangle({ x: 0, y: 0, width: 0, height: 4096 }, 0);
    const from = performance.now();
    const { updates } = await decoded(update(...Array.from({ length: 20_000 }, () => none)), {
      lengths: [65_536],
      size: { width: 1, height: 4096 },
    });
    expect(updates).toEqual([{ drawn: 0, hasAwaited: false, isNewFrame: false }]);
    // One by one, 80 million rows would take minutes.
    expect(performance.now() - from).toBeLessThan(5000);
  });

  test.each<[string, Buffer, RegExp]>([
    ["two new sizes in one", update(...[9, 10].map((width) => rectangle({ ...WHOLE, width }, -223))), /two new sizes/],
    ["a message of no kind", packed(["u8", 77]), /type 77/],
    ["too many rectangles", packed(["u8", 0], ["u8", 0], ["u16", 65_535]), /65535 rectangles/],
    ["a rectangle beyond the right edge", update(shaded({ x: 7, y: 0, width: 2, height: 1 }, 1)), /not inside 8x4/],
    ["a rectangle below the frame", update(shaded({ x: 0, y: 4, width: 1, height: 1 }, 1)), /not inside 8x4/],
    ["an encoding that was not requested", update(rectangle(WHOLE, 1)), /encoding 1 /],
    ["a size of nothing", update(rectangle({ x: 0, y: 0, width: 0, height: 4 }, -223)), /0x4/],
    ["a size that is too large", update(rectangle({ x: 0, y: 0, width: 4096, height: 65_535 }, -223)), /4096x65535/],
    ["a clipboard without end", packed(["u8", 3], new Uint8Array(3), ["u32", 0x7fffffff]), /clipboard/],
    ["an extended one without end", packed(["u8", 3], new Uint8Array(3), ["u32", 0x80000000]), /clipboard/],
    [
      "ever new sizes",
      Buffer.concat(
        Array.from({ length: 3 }, (_, n) => update(rectangle({ x: 0, y: 0, width: n + 10, height: 4 }, -223))),
      ),
      /too often/,
    ],
    ["half a rectangle", update(shaded(WHOLE, 1)).subarray(0, 40), /ended/],
  ])("with %s end the connection", async (_, bytes, why) => {
    const { error } = await decoded(bytes);
    expect(error).toBeInstanceOf(RfbError);
    expect(String(error)).toMatch(why);
  });

  test("of random bytes end it too, and take no more memory than allowed", async () => {
    await fc.assert(
      fc.asyncProperty(fc.uint8Array({ maxLength: 400 }), fc.boolean(), async (bytes, isUpdate) => {
        let most = 0;
        const hold = (frame: number) => {
          most = Math.max(most, frame);
          return () => {};
        };
        const message = isUpdate ? packed(["u8", 0], ["u8", 0], ["u16", 3], bytes) : bytes;
        const { error } = await decoded(message, { hold });
        expect(error).toBeInstanceOf(RfbError);
        expect(most).toBeLessThanOrEqual(4096 * 4096 * 4);
      }),
      { numRuns: 300 },
    );
  });
});

describe("a server's meaningless data", () => {
  /** Reads all bytes; returns the duration, and the number of turns that others had. */
  async function read(bytes: Uint8Array, reads = freshAllowances().reads) {
    const reader = new ByteReader(inPieces(bytes, [65_536]), reads, "host");
    const decoder = new Decoder(reader, WHOLE, { hold: () => () => {}, sizes: freshAllowances().sizes });
    let turns = 0;
    const others = setInterval(() => turns++, 1);
    const from = performance.now();
    for (let ended = false; !ended; )
      ended = await decoder.next().then(
        () => false,
        () => true,
      );
    clearInterval(others);
    return { took: performance.now() - from, turns };
  }

  test.each<[string, Uint8Array]>([
    ["bells", new Uint8Array(30_000).fill(2)],
    ["empty updates", Buffer.concat(Array.from({ length: 10_000 }, () => update()))],
    ["rectangles of nothing", update(...Array.from({ length: 20_000 }, () => rectangle({ ...WHOLE, width: 0 }, 0)))],
  ])("does not block others: %s", async (_, bytes) => {
    const { took, turns } = await read(bytes);
    // 20,000 reads at least, of which 4096 are free and 131 a millisecond are earned.
    expect(took).toBeGreaterThan(100);
    expect(turns).toBeGreaterThan(5);
  });

  test("is charged to the next connection too", async () => {
    const { reads } = freshAllowances();
    const bells = new Uint8Array(4096).fill(2);
    const spent = vi.spyOn(reads, "spend");
    await read(bells, reads);
    await read(bells, reads);
    const all = spent.mock.calls.reduce((sum, [count]) => sum + count, 0);
    expect(all).toBeGreaterThanOrEqual(2 * (bells.length - 256));
  });
});
