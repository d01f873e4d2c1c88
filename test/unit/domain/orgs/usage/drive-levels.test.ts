/** Levels of drives: each is written once, a few rooms in a transaction, and again if that fails. */
import { afterEach, beforeEach, expect, test, vi } from "vitest";
import type { Queries } from "../../../../../daemon/db/client.ts";
import { DriveLevels } from "../../../../../daemon/domain/orgs/usage/drive-levels.ts";
import type { RoomUid } from "../../../../../shared/ids.ts";

const ROOMS = 100;
const MAX_TOGETHER = 16;

/** Rooms of each transaction, with their levels. */
let written: [RoomUid, number][][];
let isBroken: (transaction: number) => boolean;
let levels: DriveLevels;

beforeEach(() => {
  vi.useFakeTimers();
  written = [];
  isBroken = () => false;
  let transactions = 0;
  const commit = async (write: (queries: Queries) => void) => {
    const rooms: [RoomUid, number][] = [];
    written.push(rooms);
    write({} as Queries);
    if (!isBroken(transactions++)) return;
    written.pop();
    throw new Error("broken");
  };
  levels = new DriveLevels({
    database: { commit },
    log: { error: () => {} },
    meter: {
      fills: (_: Queries, { room_uid }: { room_uid: RoomUid }, bytes: number) =>
        written.at(-1)?.push([room_uid, bytes]),
    },
    placeOf: (_: Queries, room_uid: RoomUid) => ({ room_uid }),
  } as unknown as ConstructorParameters<typeof DriveLevels>[0]);
  for (let n = 0; n < ROOMS; n++) levels.note(`rom_${n}` as RoomUid, n);
});

afterEach(() => void vi.useRealTimers());

test("are written a few rooms at a time, each once", async () => {
  await levels.settle();
  expect(Math.max(...written.map(({ length }) => length))).toBe(MAX_TOGETHER);
  expect(written.flat()).toEqual(Array.from({ length: ROOMS }, (_, n) => [`rom_${n}`, n]));
  await levels.settle();
  expect(written.flat()).toHaveLength(ROOMS);
});

test("are retried after a failed transaction, unless there is a newer level", async () => {
  isBroken = (transaction) => transaction === 1;
  await levels.settle();
  expect(written.flat()).toHaveLength(ROOMS - MAX_TOGETHER);
  levels.note(`rom_${MAX_TOGETHER}` as RoomUid, 7);
  written = [];
  await levels.settle();
  const failed = Array.from({ length: MAX_TOGETHER }, (_, n) => [
    `rom_${n + MAX_TOGETHER}`,
    n === 0 ? 7 : n + MAX_TOGETHER,
  ]);
  expect(written.flat().toSorted()).toEqual(failed.toSorted());
});
