/** Properties of the loop's scheduler, by simulation with a virtual clock. */
import { describe, expect, test } from "vitest";
import type { OwnerName } from "../../../../daemon/core/loop/owner.ts";
import { Chance } from "../../../harness/random.ts";
import { Simulation } from "./simulation.ts";

interface Client {
  owner: OwnerName;
  /** Duration of a piece. */
  ms: () => number;
  /** Requests at a time. */
  concurrency: number;
  within?: string;
}

interface Done {
  owner: OwnerName;
  within: string;
  number: number;
  waited: number;
}

/** Requests one piece after another. */
function startGreedy(simulation: Simulation, { owner, ms, concurrency, within = "" }: Client, done: Done[]): void {
  let number = 0;
  const again = async () => {
    const own = number++;
    const since = simulation.now;
    const turn = simulation.time.enter(owner, "work", within);
    if (turn) await turn;
    done.push({ owner, within, number: own, waited: simulation.now - since });
    simulation.compute(ms());
    simulation.at(simulation.now, again);
  };
  for (let each = 0; each < concurrency; each++) simulation.at(simulation.now, again);
}

/** Requests a piece every `everyMs`. */
function startSparse(
  simulation: Simulation,
  { owner, ms, everyMs, until }: Pick<Client, "owner" | "ms"> & { everyMs: number; until: number },
  done: Done[],
): void {
  let number = 0;
  for (let at = everyMs; at < until; at += everyMs) {
    simulation.at(at, async () => {
      const own = number++;
      const since = simulation.now;
      const turn = simulation.time.enter(owner, "work");
      if (turn) await turn;
      done.push({ owner, within: "", number: own, waited: simulation.now - since });
      simulation.compute(ms());
    });
  }
}

const usedBy = (simulation: Simulation, owner: string) => simulation.time.used.get(owner) ?? 0;

const SEEDS = process.env.ROOMD_TEST_LONG === "1" ? 1_000 : 200;

describe(`properties, ${SEEDS} seeds`, () => {
  test("the loop is never idle while work waits, greedy owners get equal shares, and keys keep their order", async () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const chance = new Chance(seed);
      const random = () => chance.next();
      const simulation = new Simulation();
      const done: Done[] = [];
      const owners = Array.from({ length: 2 + Math.floor(random() * 4) }, (_, n): OwnerName => `org:${n}`);
      for (const owner of owners) {
        const longest = 0.1 + random() * 3.9;
        const ms = () => 0.05 + random() * longest;
        for (const within of ["a", "b"])
          startGreedy(simulation, { owner, ms, concurrency: 32 + Math.floor(random() * 32), within }, done);
      }
      await simulation.run(1_000);
      expect([seed, simulation.idleMs]).toEqual([seed, 0]);
      const shares = owners.map((owner) => usedBy(simulation, owner) / 1_000);
      const fair = 1 / owners.length;
      for (const share of shares) expect(Math.abs(share - fair) / fair, `seed ${seed}: ${shares}`).toBeLessThan(0.1);
      for (const owner of owners) {
        for (const key of ["a", "b"]) {
          const order = done.filter((each) => each.owner === owner && each.within === key).map(({ number }) => number);
          expect(order).toEqual(order.toSorted((a, b) => a - b));
        }
      }
    }
  });

  test("an owner below its share waits for two pieces and the 2 ms of a turn at most", async () => {
    for (let seed = 0; seed < SEEDS; seed++) {
      const chance = new Chance(seed);
      const random = () => chance.next();
      const simulation = new Simulation();
      const done: Done[] = [];
      const greedy = 1 + Math.floor(random() * 6);
      let longest = 0;
      const piece = () => {
        const ms = 0.05 + random() * 3.9;
        longest = Math.max(longest, ms);
        return ms;
      };
      for (let n = 0; n < greedy; n++) startGreedy(simulation, { owner: `org:${n}`, ms: piece, concurrency: 16 }, done);
      startSparse(simulation, { owner: "org:quiet", ms: () => 0.1, everyMs: 11 + random() * 20, until: 500 }, done);
      await simulation.run(500);
      const waits = done.filter(({ owner }) => owner === "org:quiet").map(({ waited }) => waited);
      expect(waits.length).toBeGreaterThan(10);
      expect(Math.max(...waits), `seed ${seed}`).toBeLessThanOrEqual(2 * longest + 2);
    }
  });
});

test("a piece waits for one callback that cannot be delayed, even if each turn has one", async () => {
  const simulation = new Simulation();
  const done: Done[] = [];
  // Longer than the time of a turn, such as a commit.
  const callback = () => {
    simulation.time.goesOn("host", "commit");
    simulation.compute(5);
    simulation.defer(callback);
  };
  simulation.at(0, callback);
  startSparse(simulation, { owner: "org:quiet", ms: () => 0.1, everyMs: 11, until: 500 }, done);
  await simulation.run(500);
  expect(done.length).toBeGreaterThan(40);
  expect(Math.max(...done.map(({ waited }) => waited))).toBeLessThanOrEqual(10.2);
});

test("networks of unauthenticated clients have one share together, divided equally", async () => {
  const simulation = new Simulation();
  const done: Done[] = [];
  const ms = () => 0.5;
  for (const owner of ["org:a", "net:10.0.0.0", "net:10.0.1.0", "net:10.0.2.0"] as const)
    startGreedy(simulation, { owner, ms, concurrency: 8 }, done);
  await simulation.run(1_000);
  expect(usedBy(simulation, "org:a")).toBeGreaterThan(450);
  expect(usedBy(simulation, "net")).toBeGreaterThan(450);
  const parts = [0, 1, 2].map((n) => done.filter(({ owner }) => owner === `net:10.0.${n}.0`).length);
  expect(Math.max(...parts) - Math.min(...parts)).toBeLessThanOrEqual(8);
});

test("an owner whose pieces take over 20 ms gets 5 % of the time, and others proceed", async () => {
  const simulation = new Simulation();
  const done: Done[] = [];
  startGreedy(simulation, { owner: "org:long", ms: () => 30, concurrency: 4 }, done);
  startSparse(simulation, { owner: "org:quiet", ms: () => 0.1, everyMs: 5, until: 11_000 }, done);
  await simulation.run(1_000);
  // Time that it may use in advance.
  const before = usedBy(simulation, "org:long");
  expect(before).toBeGreaterThan(250);
  await simulation.run(11_000);
  const share = (usedBy(simulation, "org:long") - before) / 10_000;
  expect(share).toBeGreaterThan(0.04);
  expect(share).toBeLessThan(0.06);
  const waits = done.filter(({ owner }) => owner === "org:quiet").map(({ waited }) => waited);
  expect(waits.filter((waited) => waited > 1).length / waits.length).toBeLessThan(0.08);
});

test("time after an await is charged to the continuing owner, and idle time is not charged", async () => {
  const simulation = new Simulation();
  simulation.at(1, () => {
    simulation.time.goesOn("org:a", "first");
    simulation.compute(2);
    simulation.time.goesOn("host", "second");
    simulation.compute(3);
  });
  simulation.at(50, () => simulation.time.goesOn("org:a", "third"));
  await simulation.run(100);
  expect([...simulation.time.used]).toEqual([
    ["org:a", 2],
    ["host", 3],
  ]);
  expect(simulation.pieces.map(({ label, ms }) => [label, ms])).toEqual([
    ["first", 2],
    ["second", 3],
    ["third", 0],
  ]);
});

test("work without a queue starts immediately for about 3 ms of a turn, the rest in later turns", async () => {
  const simulation = new Simulation();
  let started = 0;
  let later = 0;
  simulation.at(1, () => {
    for (let each = 0; each < 100; each++) {
      const turn = simulation.time.enter("net:a", "request");
      if (turn) void turn.then(() => simulation.compute(0.1)).then(() => later++);
      else {
        started++;
        simulation.compute(0.1);
      }
    }
  });
  await simulation.run(50);
  expect(Math.abs(started - 30)).toBeLessThanOrEqual(1);
  expect(later).toBe(100 - started);
});

test("a callback of a piece's continuation belongs to its owner, one of work between pieces to the service", async () => {
  const simulation = new Simulation();
  const { time } = simulation;
  simulation.at(1, () => {
    const between = time.continuation("timer");
    time.goesOn("org:a", "call");
    const go = time.continuation("file");
    simulation.at(10, () => {
      go();
      simulation.compute(3);
    });
    simulation.at(20, () => {
      between();
      simulation.compute(2);
    });
  });
  await simulation.run(30);
  expect(simulation.pieces.map(({ owner, label, ms }) => [owner, label, ms])).toEqual([
    ["org:a", "call", 0],
    ["org:a", "call", 3],
    ["host", "timer", 2],
  ]);
});

test("a request of an authenticated caller waits for no piece of each busy organization in its network", async () => {
  const simulation = new Simulation();
  const { time } = simulation;
  const call = async (owner: OwnerName, connection: string, ms: number) => {
    await time.enter("net:a", "request", connection);
    simulation.compute(0.1);
    await time.enter(owner, "call");
    simulation.compute(ms);
  };
  const keep = async (owner: OwnerName, connection: string) => {
    for (;;) {
      await call(owner, connection, 2);
      await new Promise<void>((next) => simulation.at(simulation.now, next));
    }
  };
  for (let org = 0; org < 50; org++) for (const lane of [0, 1]) void keep(`org:${org}`, `${org} ${lane}`);
  const waits: number[] = [];
  for (let at = 1_000; at < 5_000; at += 20)
    simulation.at(at, async () => {
      const from = simulation.now;
      await call("org:quiet", `quiet ${at}`, 0.1);
      waits.push(simulation.now - from);
    });
  await simulation.run(5_200);
  expect(waits.length).toBe(200);
  expect(waits.toSorted((a, b) => a - b)[198]).toBeLessThan(25);
  expect(time.used.get("net")).toBeUndefined();
});
