import {
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  truncateSync,
  writeFileSync,
  writeSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import type { Artifact } from "../../../../../daemon/domain/rooms/move/artifacts.ts";
import { FORMAT, NotWhole, PIECE_BYTES, type RoomHeader } from "../../../../../daemon/domain/rooms/move/format.ts";
import { packed } from "../../../../../daemon/domain/rooms/move/pack.ts";
import { CLIENTS } from "../../../../../daemon/domain/rooms/move/timeouts.ts";
import { RoomReader, type UnpackBounds } from "../../../../../daemon/domain/rooms/move/unpack.ts";
import { contentIn, entriesIn, makeStoreDirectories } from "../../../../../daemon/host/files/store-places.ts";

const BOUNDS = { bytes: 16 * PIECE_BYTES, files: 100 };
const ABOUT: RoomHeader = {
  room: {
    ...{ room_uid: `rom_${"0".repeat(26)}`, room_id: "build-42", org_id: "org_1", labels: { team: "x" } },
    ...{ drive_limit_bytes: 1, created_at: "2026-11-27T06:00:00.000Z", updated_at: "2026-11-27T06:00:00.000Z" },
    ...{ expires_at: null, created_by_type: "key", created_by_id: "key_1", keep_drive: true, former_ids: [] },
  },
  ...{ from: "host-1", epoch: 1, head: null, drive_bytes: 5, other_bytes: 0 },
};

let home: string;
let from: { store: string; state: string };
let to: { store: string; state: string };

beforeEach(async () => {
  home = mkdtempSync(join(tmpdir(), "room-file-"));
  from = { store: join(home, "from"), state: join(home, "state") };
  mkdirSync(join(home, "into"));
  to = { store: join(home, "into", "drive"), state: join(home, "into", "state") };
  await makeStoreDirectories(from.store);
  writeFileSync(from.state, "the state\n");
  writeFileSync(entriesIn(from.store), "the list\n");
  writeFileSync(contentIn(from.store, 0), Buffer.alloc(2 * PIECE_BYTES + 7, "roomd"));
  writeFileSync(contentIn(from.store, 300), "");
});

afterEach(() => rmSync(home, { recursive: true, force: true }));

async function* belongings(): AsyncGenerator<Artifact> {
  const plain = { to: null, digest: null, bytes: 1 };
  const path = join(home, "state");
  yield { ...plain, place: "snapshots/snap_1/base/root.qcow2", path };
  yield { ...plain, place: "sandboxes/sbx_1/base/root.qcow2", path, to: "snapshots/snap_1/base/root.qcow2" };
  yield { ...plain, place: "sandboxes/sbx_1/base/vmlinuz", path, digest: DIGEST };
}
const DIGEST = "0".repeat(64);

const whole = async () =>
  Buffer.concat(await Array.fromAsync(packed(from, { roomd_room: FORMAT, about: ABOUT }, belongings())));

/** The bytes in pieces of a size. */
async function* inPieces(bytes: Buffer, size: number) {
  for (let at = 0; at < bytes.length; at += size) yield bytes.subarray(at, at + size);
}

async function read(bytes: Buffer, { size = 65_536, bounds = BOUNDS as UnpackBounds } = {}): Promise<RoomHeader> {
  const reader = new RoomReader(inPieces(bytes, size), CLIENTS);
  const about = await reader.about();
  await reader.unpack({ ...to, ...places(), templates: new Map([[DIGEST, from.state]]) }, bounds);
  return about;
}

const line = (value: object) => Buffer.from(`${JSON.stringify(value)}\n`);
const places = () => ({ room: join(home, "into", "room"), sandboxes: join(home, "into", "sandboxes") });
const first = line({ roomd_room: 2, about: ABOUT });

describe("a room's file", () => {
  test.each([1, 7, 4096, 1_000_000_000])("is restored unchanged, in pieces of %d bytes", async (size) => {
    if (size < 10) writeFileSync(contentIn(from.store, 0), "short");
    expect(await read(await whole(), { size })).toEqual(ABOUT);
    for (const name of [0, 300]) {
      expect(readFileSync(contentIn(to.store, name)).equals(readFileSync(contentIn(from.store, name)))).toBe(true);
    }
    expect(readFileSync(to.state, "utf8")).toBe("the state\n");
    expect(readFileSync(entriesIn(to.store), "utf8")).toBe("the list\n");
  });

  test("contains no holes, and they are restored", async () => {
    const size = 2 ** 40;
    truncateSync(contentIn(from.store, 300), size);
    const bytes = await whole();
    expect(bytes.length).toBeLessThan(3 * PIECE_BYTES);
    await read(bytes);
    const { size: made, blocks } = statSync(contentIn(to.store, 300));
    expect([made, blocks]).toEqual([size, 0]);
  });

  test("contains no holes if there is a little data between many", async () => {
    const path = contentIn(from.store, 300);
    truncateSync(path, 64 * PIECE_BYTES);
    const file = openSync(path, "r+");
    for (let at = 0; at < 64; at++) writeSync(file, "roomd", at * PIECE_BYTES + 5000);
    closeSync(file);
    const bytes = await whole();
    expect(bytes.length).toBeLessThan(4 * PIECE_BYTES);
    await read(bytes);
    expect(readFileSync(contentIn(to.store, 300)).equals(readFileSync(path))).toBe(true);
    expect(statSync(contentIn(to.store, 300)).blocks * 512).toBeLessThan(PIECE_BYTES);
  });

  test("is rejected if a byte is changed, missing or added", async () => {
    const bytes = await whole();
    const changed = Buffer.from(bytes);
    changed[bytes.length - 200] = (changed[bytes.length - 200] ?? 0) ^ 1;
    for (const bad of [changed, bytes.subarray(0, -1), bytes.subarray(0, 500_000), Buffer.concat([bytes, line({})])]) {
      rmSync(join(home, "into"), { recursive: true });
      mkdirSync(join(home, "into"));
      await expect(read(bad)).rejects.toThrow();
    }
  });

  test("is rejected if it is larger than a room may be", async () => {
    const bytes = await whole();
    await expect(read(bytes, { bounds: { ...BOUNDS, bytes: PIECE_BYTES } })).rejects.toThrow("size limit");
    rmSync(join(home, "into"), { recursive: true });
    mkdirSync(join(home, "into"));
    await expect(read(bytes, { bounds: { ...BOUNDS, files: 3 } })).rejects.toThrow("more files");
  });

  test.each([
    ["a name of a place", line({ file: "../../etc/passwd", size: 1 })],
    ["an invalid number", line({ file: -1, size: 1 })],
    ["a number with a place in it", line({ file: "1/../../x", size: 1 })],
    ["a place that leads out", line({ file: "snapshots/../../x", size: 1 })],
    ["a link that leads out", line({ link: "snapshots/a/disk", to: "../state" })],
    ["a link to a missing file", line({ link: "snapshots/a/disk", to: "snapshots/b/disk" })],
    ["a file of a template that is not here", line({ same: "snapshots/a/base/root.qcow2", digest: "1".repeat(64) })],
    ["bytes of no file", Buffer.concat([line({ at: 0, bytes: 1 }), Buffer.from("x")])],
    ["bytes beyond a file", Buffer.concat([line({ file: 1, size: 1 }), line({ at: 1, bytes: 1 }), Buffer.from("x")])],
    [
      "bytes that go back",
      Buffer.concat([
        ...[line({ file: 1, size: 9 }), line({ at: 4, bytes: 1 }), Buffer.from("x")],
        ...[line({ at: 0, bytes: 1 }), Buffer.from("x")],
      ]),
    ],
    ["the same file twice", Buffer.concat([line({ file: 1, size: 0 }), line({ file: 1, size: 0 })])],
    ["a piece of any size", Buffer.concat([line({ file: 1, size: 2 ** 40 }), line({ at: 0, bytes: 2 ** 30 })])],
    ["a line without an end", Buffer.alloc(2 ** 20, "x")],
    ["no JSON", Buffer.from("{\n")],
  ])("is rejected with %s", async (_what, hostile) => {
    await expect(read(Buffer.concat([first, hostile]))).rejects.toThrow();
    expect(readdirSync(home).sort()).toEqual(["from", "into", "state"]);
  });

  test.each([
    ["another form", { roomd_room: 1, about: ABOUT }],
    ["no room", { roomd_room: 2 }],
    ["a room_uid that is a place", { roomd_room: 2, about: { ...ABOUT, room: { ...ABOUT.room, room_uid: "../x" } } }],
  ])("is rejected as %s", async (_what, header) => {
    await expect(read(line(header))).rejects.toThrow(NotWhole);
  });

  test("from an untrusted source counts by its disk usage, however small its pieces are", async () => {
    const pieces = Array.from({ length: 64 }, (_, at) => [line({ at: at * 4096, bytes: 1 }), Buffer.from("x")]);
    const bomb = Buffer.concat([first, line({ file: 1, size: 2 ** 20 }), ...pieces.flat()]);
    const [bytes, files] = [32 * 4096, 9];
    await expect(read(bomb, { bounds: { bytes, files, mayHave: /^$/ } })).rejects.toThrow("size limit");
    expect(statSync(contentIn(to.store, 1)).blocks * 512).toBeLessThanOrEqual(bytes);
    // Adjacent pieces count with their bytes only.
    const near = Array.from({ length: 64 }, (_, at) => [line({ at, bytes: 1 }), Buffer.from("x")]);
    rmSync(to.store, { recursive: true });
    const whole = Buffer.concat([first, line({ file: 1, size: 64 }), ...near.flat()]);
    await expect(read(whole, { bounds: { bytes: 4096, files, mayHave: /^$/ } })).rejects.toThrow("ended early");
  });

  test("from an untrusted source counts each file as a block, including empty ones", async () => {
    const empty = Array.from({ length: 33 }, (_, at) => line({ file: at, size: 0 }));
    const bounds = { bytes: 32 * 4096, files: 99, mayHave: /^$/ };
    await expect(read(Buffer.concat([first, ...empty]), { bounds })).rejects.toThrow("size limit");
    rmSync(to.store, { recursive: true });
    // The content of a file is not counted in addition to its first block.
    const small = empty
      .slice(1)
      .flatMap((_, at) => [...[line({ file: at, size: 4096 }), line({ at: 0, bytes: 9 }), Buffer.from("something")]]);
    await expect(read(Buffer.concat([first, ...small]), { bounds })).rejects.toThrow("ended early");
    // Of a move only bytes count.
    rmSync(to.store, { recursive: true });
    await expect(read(Buffer.concat([first, ...empty]), { bounds: { bytes: 1, files: 99 } })).rejects.toThrow("early");
  });

  test("is aborted if no data arrives", async () => {
    const silent = new RoomReader(
      { [Symbol.asyncIterator]: () => ({ next: () => new Promise(() => {}) }) },
      { ...CLIENTS, silenceMs: 20 },
    );
    await expect(silent.about()).rejects.toThrow("20 ms");
  });

  test("is aborted if it arrives continuously but too slowly", async () => {
    const slowly = async function* () {
      for (;;) {
        await new Promise(setImmediate);
        yield Buffer.from("x");
      }
    };
    const slow = new RoomReader(slowly(), { silenceMs: 60_000, slackMs: 1, bytesPerSecond: 1e12 });
    await expect(slow.about()).rejects.toThrow("too slowly");
  });
});
