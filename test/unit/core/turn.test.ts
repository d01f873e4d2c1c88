/** Long work in pieces, and bytes without end: how much of it is done in a turn of the event loop, and in whose order. */
import { expect, test } from "vitest";
import { FlowTurns, LongWork, nextTurn } from "../../../daemon/core/turn.ts";

test("in one turn one piece is done, however many want theirs, and owners take turns", async () => {
  const work = new LongWork();
  const done: string[] = [];
  const goThrough = async (owner: string, pieces: number) => {
    for (let n = 0; n < pieces; n++) {
      await work.turn(owner);
      done.push(owner);
    }
  };
  const all = Promise.all([...Array.from({ length: 20 }, () => goThrough("a", 3)), goThrough("b", 3)]);
  const inTurns: number[] = [];
  for (let before = 0; done.length < 63; before = done.length) {
    await nextTurn();
    inTurns.push(done.length - before);
  }
  await all;
  // The turns that are counted here may begin before or after those of the work.
  expect(Math.max(...inTurns)).toBeLessThanOrEqual(2);
  expect(done.lastIndexOf("b")).toBeLessThanOrEqual(6);
});

test("work that begins once others' is over has its turns", async () => {
  const work = new LongWork();
  for (const owner of ["a", "b", "a"]) {
    await work.turn(owner);
    await nextTurn();
  }
});

test("a flow of bytes waits for a turn after so many, and one of few does not", async () => {
  const turns = new FlowTurns();
  for (let each = 0; each < 63; each++) {
    turns.moved(1024);
    expect(turns.next()).toBeNull();
  }
  turns.moved(1024);
  let others = 0;
  setImmediate(() => others++);
  await turns.next();
  expect([others, turns.next()]).toEqual([1, null]);
});

test("of many flows one moves in a turn, and each as much as the others", async () => {
  const moved: number[] = [];
  let over = false;
  const flow = async (own: number) => {
    const turns = new FlowTurns();
    while (!over) {
      await turns.next();
      turns.moved(64 * 1024);
      moved.push(own);
      await null;
    }
  };
  const all = Promise.all(Array.from({ length: 10 }, (_, own) => flow(own)));
  const inTurns: number[] = [];
  await nextTurn();
  for (let before = moved.length; inTurns.length < 100; before = moved.length) {
    await nextTurn();
    inTurns.push(moved.length - before);
  }
  over = true;
  await all;
  // The turns that are counted here may begin before or after those of the flows.
  expect(Math.max(...inTurns)).toBeLessThanOrEqual(2);
  const each = Array.from({ length: 10 }, (_, own) => moved.filter((by) => by === own).length);
  expect(Math.max(...each) - Math.min(...each)).toBeLessThanOrEqual(2);
});
