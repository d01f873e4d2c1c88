/**
 * The ring of an execution's output: every piece once and in order, backpressure from readers, overtaken readers, and the remaining output
 * on a full disk.
 */
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { HistoryGone, Journal, type Reader } from "../../../../guest-agent/exec/kept-output.ts";
import { PieceDecoder } from "../../../../shared/agent-protocol/pieces.ts";

const KIB = 1024;
const KEPT = 1024 * KIB;

/** A file in memory, which takes nothing while it is full. */
class MemoryFile {
  readonly #bytes = Buffer.alloc(8 * KEPT);
  full = false;
  /** Whether nothing can be read from it. */
  lost = false;
  written = 0;

  write(bytes: Uint8Array, offset: number): void {
    if (this.full) throw new Error("no space");
    this.written += bytes.byteLength;
    // The tests write less than the file holds.
    this.#bytes.set(bytes, offset);
  }

  async read(offset: number, bytes: Uint8Array): Promise<void> {
    if (this.lost) throw new Error("nothing can be read");
    bytes.set(this.#bytes.subarray(offset, offset + bytes.byteLength));
  }

  close(): void {}
}

let file: MemoryFile;
let journal: Journal;
beforeEach(() => {
  file = new MemoryFile();
  journal = new Journal({ kept_bytes: KEPT, open: () => file });
});
afterEach(() => journal.forget());

/** Pieces of 16 KiB, each of them all its own number. */
async function write(count: number, from = 1): Promise<void> {
  for (let number = from; number < from + count; number++) {
    await journal.append(number % 2 === 0 ? 1 : 2, new Uint8Array(16 * KIB).fill(number % 251));
  }
}

async function readAll(reader: Reader, after: number, most = 64 * KIB): Promise<number[]> {
  const decoder = new PieceDecoder(after);
  const seqs: number[] = [];
  for (let bytes = await reader.next(most); bytes !== null; bytes = await reader.next(most)) {
    for (const { seq, channel, bytes: own } of decoder.push(bytes)) {
      expect({ channel, all: own[0] === seq % 251 && own.at(-1) === seq % 251 }).toEqual({
        channel: 1 + (seq % 2),
        all: true,
      });
      seqs.push(seq);
    }
  }
  return seqs;
}

const range = (from: number, to: number) => Array.from({ length: to - from + 1 }, (_, index) => from + index);

/** Whether it is still not settled once everything has happened that can. */
async function isHeld(work: Promise<unknown>): Promise<boolean> {
  let settled = false;
  work.then(
    () => {
      settled = true;
    },
    () => {
      settled = true;
    },
  );
  for (let turn = 0; turn < 50; turn++) await new Promise((done) => setImmediate(done));
  return !settled;
}

test("available bytes are read in one call and cut into pieces", async () => {
  const all = Buffer.alloc(300 * KIB).map((_, at) => (at * 7) % 251);
  let given = 0;
  const read = (places: readonly Uint8Array[]) => {
    const before = given;
    for (const place of places) {
      const part = all.subarray(given, Math.min(given + place.byteLength, 200 * KIB));
      place.set(part);
      given += part.byteLength;
    }
    return given - before;
  };
  for (let round = 0; round < 30; round++) {
    given = 0;
    while (given < 200 * KIB) await journal.take(1, 300 * KIB, read);
  }
  expect(await journal.take(1, 10, () => 0)).toBe(0);
  journal.close();
  const after = journal.oldestSeq - 1;
  const reader = await journal.reader(after);
  const decoder = new PieceDecoder(after);
  const seen: Uint8Array[] = [];
  let last = after;
  for (let bytes = await reader.next(64 * KIB); bytes !== null; bytes = await reader.next(64 * KIB)) {
    for (const { seq, bytes: own } of decoder.push(Buffer.from(bytes))) {
      seen.push(own);
      last = seq;
    }
  }
  expect(last).toBe(journal.lastSeq);
  const end = Buffer.concat(seen);
  expect(end.subarray(-200 * KIB).equals(all.subarray(0, 200 * KIB))).toBe(true);
  expect(end.subarray(-400 * KIB, -200 * KIB).equals(all.subarray(0, 200 * KIB))).toBe(true);
});

test.each(["memory", "the file"])("of pieces passed on from %s only the accepted ones count", async (from) => {
  await write(60);
  journal.close();
  const after = from === "memory" ? 50 : 0;
  const reader = await journal.reader(after);
  const decoder = new PieceDecoder(after);
  const seqs: number[] = [];
  let most = 0;
  const take = (bytes: Buffer) => {
    most = (most + 4001) % 40_000;
    const part = Buffer.from(bytes.subarray(0, most));
    for (const { seq, bytes: own } of decoder.push(part)) {
      seqs.push(seq);
      expect([own[0], own.at(-1)]).toEqual([seq % 251, seq % 251]);
    }
    return part.byteLength;
  };
  // Also when nothing is taken.
  expect(await reader.pass(true, () => 0)).toBe(true);
  while (await reader.pass(true, take));
  expect(seqs).toEqual(range(after + 1, 60));
});

test("a reader gets every piece after the given one, for reads of any size", async () => {
  await write(40);
  journal.close();
  for (const after of [0, 1, 7, 8, 39]) {
    for (const bite of [7 * KIB, 64 * KIB]) {
      expect(await readAll(await journal.reader(after), after, bite)).toEqual(range(after + 1, 40));
    }
  }
  expect(await readAll(await journal.reader(40), 40)).toEqual([]);
  expect(file.written).toBeGreaterThan(16 * KIB * 30);
});

test("pieces written during a read arrive as well, and the end is reported", async () => {
  const all = readAll(await journal.reader(0), 0);
  await write(200);
  journal.close();
  expect(await all).toEqual(range(1, 200));
});

test("little output needs no file", async () => {
  await journal.append(1, new Uint8Array(2 * KIB));
  journal.close();
  expect(await isHeld(Promise.resolve())).toBe(false);
  expect(file.written).toBe(0);
});

describe("a passive reader", () => {
  test("gets all of it while it is quick enough", async () => {
    const all = readAll(await journal.reader(0, true), 0);
    await write(40);
    journal.close();
    expect(await all).toEqual(range(1, 40));
  });

  test("blocks no command, is overtaken, and gets an error", async () => {
    const slow = await journal.reader(0, true);
    await write(200);
    await expect(slow.next(64 * KIB)).rejects.toThrow(HistoryGone);
    const caughtUp = await journal.reader(200, true);
    const next = caughtUp.next(64 * KIB);
    expect(await isHeld(write(100, 201))).toBe(false);
    await expect(next.then(() => readAll(caughtUp, 201))).rejects.toThrow(HistoryGone);
  });

  test("does not keep another reader from setting the pace, however far ahead", async () => {
    const slow = await journal.reader(0);
    const fast = await journal.reader(0, true);
    const writing = write(200);
    await fast.next(64 * KIB);
    expect(await isHeld(writing)).toBe(true);
    slow.close();
    await writing;
  });

  test("is not awaited on a full disk", async () => {
    file.full = true;
    await journal.reader(0, true);
    await write(100);
    expect(journal.lastSeq).toBe(100);
  });
});

describe("without a reader", () => {
  test("the oldest pieces are overwritten, and reading them is an error", async () => {
    await write(200);
    journal.close();
    expect(journal.oldestSeq).toBeGreaterThan(100);
    const kept = (journal.lastSeq - journal.oldestSeq + 1) * 16 * KIB;
    expect(kept).toBeGreaterThanOrEqual(KEPT - 16 * KIB);
    expect(kept).toBeLessThan(KEPT + 256 * KIB);
    await expect(journal.reader(0)).rejects.toThrow(HistoryGone);
    await expect(journal.reader(journal.oldestSeq - 2)).rejects.toThrow(HistoryGone);
    const after = journal.oldestSeq - 1;
    expect(await readAll(await journal.reader(after), after)).toEqual(range(after + 1, 200));
  });
});

describe("with readers", () => {
  test("the command is held before its only reader is overtaken, and resumes when that reads or leaves", async () => {
    const reader = await journal.reader(0);
    const writing = write(300);
    expect(await isHeld(writing)).toBe(true);
    expect(journal.oldestSeq).toBe(1);
    const heldAt = journal.lastSeq;
    for (let bite = 0; bite < 16; bite++) await reader.next(64 * KIB);
    expect(await isHeld(writing)).toBe(true);
    expect(journal.lastSeq).toBeGreaterThan(heldAt);
    reader.close();
    await writing;
    expect(journal.lastSeq).toBe(300);
    expect(await reader.next(1)).toBeNull();
  });

  test("an up-to-date reader holds the command close, and reads from memory alone", async () => {
    const reader = await journal.reader(0);
    const first = reader.next(64 * KIB);
    const writing = write(100);
    expect(await isHeld(writing)).toBe(true);
    expect(journal.lastSeq * 16 * KIB).toBeLessThan(384 * KIB);
    file.lost = true;
    const decoder = new PieceDecoder(0);
    const seqs: number[] = [];
    for (let bytes = await first; bytes && seqs.length < 90; bytes = await reader.next(64 * KIB)) {
      for (const { seq } of decoder.push(bytes)) seqs.push(seq);
      await isHeld(writing);
    }
    expect(seqs).toEqual(range(1, seqs.length));
    reader.close();
    await writing;
  });

  test("a fast one does not wait for a slow one, which is notified that it was overtaken", async () => {
    const slow = await journal.reader(0);
    const fast = readAll(await journal.reader(0), 0);
    await write(300);
    journal.close();
    expect(await fast).toEqual(range(1, 300));
    await expect(slow.next(64 * KIB)).rejects.toThrow(HistoryGone);
  });

  test("bytes left in the pipes at the command's end are not held, and not lost to a slow reader", async () => {
    const reader = await journal.reader(0);
    const writing = write(300);
    expect(await isHeld(writing)).toBe(true);
    const heldAt = journal.lastSeq;
    journal.commandEnded();
    await writing;
    // Beyond the permitted addition the oldest pieces are evicted anyway.
    expect(journal.lastSeq).toBe(300);
    journal.close();
    const few = new Journal({ kept_bytes: KEPT, open: () => new MemoryFile() });
    const behind = await few.reader(0);
    journal.forget();
    journal = few;
    const writingFew = write(heldAt + 20);
    expect(await isHeld(writingFew)).toBe(true);
    few.commandEnded();
    await writingFew;
    few.close();
    expect(await readAll(behind, 0)).toEqual(range(1, heldAt + 20));
    reader.close();
  });

  test("a waiting reader gets an error when the journal is forgotten", async () => {
    const reader = await journal.reader(0);
    const waiting = reader.next(1);
    expect(await isHeld(waiting)).toBe(true);
    journal.forget();
    await expect(waiting).rejects.toThrow(HistoryGone);
    await expect(journal.reader(0)).rejects.toThrow(HistoryGone);
  });
});

describe("on a full disk", () => {
  test("a reader gets everything, and only earlier pieces are not stored", async () => {
    file.full = true;
    const all = readAll(await journal.reader(0), 0);
    await write(100);
    journal.close();
    expect(await all).toEqual(range(1, 100));
    await expect(journal.reader(0)).rejects.toThrow(HistoryGone);
  });

  test("without a reader the command continues, and output is stored again once there is space", async () => {
    file.full = true;
    await write(100);
    file.full = false;
    await write(50, 101);
    journal.close();
    const after = journal.oldestSeq - 1;
    expect(after).toBeGreaterThan(50);
    expect(await readAll(await journal.reader(after), after)).toEqual(range(after + 1, 150));
  });
});
