/** Pictures: pixels that are averaged, and PNG that another program's decoder would read. */
import { crc32, inflateSync } from "node:zlib";
import { describe, expect, test } from "vitest";
import { loopTime, Pieces } from "../../../../daemon/core/loop/index.ts";
import { encodePng } from "../../../../daemon/domain/screen/picture/png.ts";
import { scaled, scaledSize } from "../../../../daemon/domain/screen/picture/scale.ts";
import { Scale } from "../../../../daemon/domain/screen/places.ts";
import { type Frame, wholeOf } from "../../../../daemon/domain/screen/rfb/frame.ts";

const pieces = new Pieces(loopTime, "host", "room.screen");

function frameOf(width: number, height: number, colour: (x: number, y: number) => readonly [number, number, number]) {
  const pixels = new Uint8Array(width * height * 4);
  for (let y = 0; y < height; y++) for (let x = 0; x < width; x++) pixels.set(colour(x, y), (y * width + x) * 4);
  return { width, height, pixels } satisfies Frame;
}

/** Decodes a PNG, as far as ours need it. */
function decodePng(png: Buffer) {
  expect(png.subarray(0, 8)).toEqual(Buffer.from([137, 80, 78, 71, 13, 10, 26, 10]));
  const chunks: Record<string, Buffer> = {};
  for (let at = 8; at < png.byteLength; ) {
    const length = png.readUInt32BE(at);
    const named = png.subarray(at + 4, at + 8 + length);
    expect(png.readUInt32BE(at + 8 + length)).toBe(crc32(named));
    chunks[named.toString("latin1", 0, 4)] = named.subarray(4);
    at += 12 + length;
  }
  const { IHDR = Buffer.alloc(0), IDAT = Buffer.alloc(0) } = chunks;
  expect(Object.keys(chunks)).toEqual(["IHDR", "IDAT", "IEND"]);
  const [width, height] = [IHDR.readUInt32BE(0), IHDR.readUInt32BE(4)];
  expect([...IHDR.subarray(8)]).toEqual([8, 2, 0, 0, 0]);
  const rows = inflateSync(IDAT);
  const rgb = Buffer.alloc(width * height * 3);
  for (let row = 0; row < height; row++) {
    expect(rows[row * (width * 3 + 1)]).toBe(2);
    for (let at = 0; at < width * 3; at++) {
      const above = row === 0 ? 0 : (rgb[(row - 1) * width * 3 + at] ?? 0);
      rgb[row * width * 3 + at] = (rows[row * (width * 3 + 1) + 1 + at] ?? 0) + above;
    }
  }
  return { width, height, rgb };
}

test("a PNG has the frame's pixels", async () => {
  const frame = frameOf(37, 23, (x, y) => [x * 7, y * 11, (x * y) & 255]);
  const pixels = await scaled(frame, wholeOf(frame), frame, pieces);
  const png = decodePng(await encodePng(pixels, pieces));
  expect(png).toEqual({ width: 37, height: 23, rgb: Buffer.from(pixels.rgb) });
  expect([...png.rgb.subarray((22 * 37 + 36) * 3)]).toEqual([252, 242, (36 * 22) & 255]);
});

describe("scaling", () => {
  test("averages pixels that coincide", async () => {
    const frame = frameOf(4, 2, (x) => (x % 2 === 0 ? [100, 0, 40] : [200, 255, 41]));
    const { rgb } = await scaled(frame, wholeOf(frame), { width: 2, height: 1 }, pieces);
    expect([...rgb]).toEqual([150, 128, 41, 150, 128, 41]);
  });

  test("weights each pixel by its overlap", async () => {
    const frame = frameOf(3, 1, (x) => [x * 90, 30, 30]);
    const { rgb } = await scaled(frame, wholeOf(frame), { width: 2, height: 1 }, pieces);
    expect([...rgb]).toEqual([30, 30, 30, 150, 30, 30]);
  });

  test("preserves a uniform colour at any size", async () => {
    const frame = frameOf(131, 77, () => [255, 254, 1]);
    for (const width of [1, 2, 16, 100, 130]) {
      const { rgb } = await scaled(frame, wholeOf(frame), scaledSize(frame, width), pieces);
      for (let at = 0; at < rgb.length; at += 3) expect([...rgb.subarray(at, at + 3)]).toEqual([255, 254, 1]);
    }
  });

  test("can be limited to a region", async () => {
    const frame = frameOf(10, 10, (x, y) => [x, y, 0]);
    const { rgb } = await scaled(frame, { x: 3, y: 7, width: 2, height: 1 }, { width: 2, height: 1 }, pieces);
    expect([...rgb]).toEqual([3, 7, 0, 4, 7, 0]);
  });

  test("keeps proportions and never enlarges", () => {
    expect(scaledSize({ width: 1280, height: 800 }, 1024)).toEqual({ width: 1024, height: 640 });
    expect(scaledSize({ width: 1280, height: 800 }, 4096)).toEqual({ width: 1280, height: 800 });
    expect(scaledSize({ width: 4096, height: 1 }, 16)).toEqual({ width: 16, height: 1 });
  });
});

describe("places", () => {
  const half = new Scale({ width: 1280, height: 800 }, 640);

  test("are those of the requested picture", () => {
    expect(half).toMatchObject({ width: 640, height: 400 });
    expect(half.real([0, 0])).toEqual({ x: 1, y: 1 });
    expect(half.real([639, 399])).toEqual({ x: 1279, y: 799 });
    expect(half.shown([1279, 799])).toEqual([639, 399]);
    expect(half.region([10, 20, 30, 60])).toEqual({ x: 20, y: 40, width: 40, height: 80 });
    expect(half.region([639, 399, 640, 400])).toEqual({ x: 1278, y: 798, width: 2, height: 2 });
  });

  test("are restored unchanged, at every size", () => {
    for (const width of [16, 333, 1024, 1279, 1280]) {
      const scale = new Scale({ width: 1280, height: 800 }, width);
      for (let x = 0; x < scale.width; x++) {
        const real = scale.real([x, 0]);
        expect(scale.shown([real.x, real.y])[0]).toBe(x);
      }
    }
  });
});
