/**
 * Rooms full of work with repeated faults: guests are created, run commands, use the drive and are destroyed. At the end nothing of it
 * remains, and the daemon is no larger than before.
 */
import { describe, expect } from "vitest";
import { FAULTS, type Fault } from "../../harness/durability/faults.ts";
import { expectAtRest } from "../../harness/durability/invariants.ts";
import { Ledger } from "../../harness/durability/ledger.ts";
import { LONG, testAlone } from "../../harness/guests.ts";
import { descriptorKinds, privateMemoryMib } from "../../harness/host-facts.ts";
import { Chance } from "../../harness/random.ts";

const MINUTE_MS = 60_000;
const ROOMS = ["one", "two", "three"];
const SAMPLE_MS = 5_000;
const LONG_TIMEOUT_MS = 60 * MINUTE_MS;
/**
 * Allowed growth of the daemon over the second half of the long run. A sandbox that was not released holds at least its frame buffers and
 * its console's, some 200 KiB: in these minutes some hundreds of sandboxes are created and destroyed.
 */
const GROWTH_MIB = 24;

/** One room's work: a guest is created, used, and destroyed; other code injects the faults. */
async function lane(ledger: Ledger, room: string, cid: number, over: () => boolean): Promise<number> {
  let turn = 0;
  for (; !over(); turn++) {
    const made = await ledger.createSandbox(room, `a${turn}`, cid + (turn % 20));
    const uses = [
      () => (made ? ledger.exec(made) : Promise.resolve()),
      () => ledger.write(room, `file-${turn % 5}`, `${turn} `.repeat(20_000)),
      () => ledger.append(room, `log-${turn % 50}`, `${turn} and so on\n`),
    ];
    for (let use = 0; use < 9; use++) await uses[use % uses.length]?.();
    if (made) await ledger.destroySandbox(made, room);
    // A daemon that is restarting refuses immediately.
    else await Bun.sleep(200);
  }
  return turn;
}

if (!LONG) console.log("churn with faults: left out, because it takes minutes; ROOMD_TEST_LONG=1 runs it");

describe.skipIf(!LONG)("long tests", () =>
  testAlone(
    "random work with faults leaks nothing",
    { env: { ROOMD_POOL_SIZE: "1", ROOMD_DRIVE_LIMIT_GIB: "4", ROOMD_RECONCILE_INTERVAL: "5s" } },
    async (daemon) => {
      const chance = new Chance();
      const minutes = Number(process.env.ROOMD_TEST_MINUTES ?? 20);
      const faultEveryMs = MINUTE_MS;
      const ledger = new Ledger(daemon);

      // One pass through everything: descriptors that are opened once and kept are open after it.
      await ledger.createRoom("first");
      await lane(ledger, "first", 9800, onceOver());
      await ledger.destroyRoom("first");
      await expectAtRest(daemon);
      const descriptors = descriptorKinds(daemon.pid);

      for (const room of ROOMS) await ledger.createRoom(room);
      const startedAt = performance.now();
      const endsAt = startedAt + minutes * MINUTE_MS;
      const over = () => performance.now() > endsAt;
      const lanes = ROOMS.map((room, index) => lane(ledger, room, 9200 + index * 100, over));
      const memory: { pid: number; at: number; mib: number }[] = [];
      const sample = () => {
        if (daemon.runs) memory.push({ pid: daemon.pid, at: performance.now(), mib: privateMemoryMib(daemon.pid) });
      };

      const nextFault = dealer(chance);
      let faults = 0;
      let nextFaultAt = startedAt + faultEveryMs / 2;
      while (!over()) {
        await Bun.sleep(Math.max(0, Math.min(SAMPLE_MS, nextFaultAt - performance.now(), endsAt - performance.now())));
        sample();
        if (performance.now() < nextFaultAt || over()) continue;
        nextFaultAt += faultEveryMs;
        const fault = nextFault(performance.now() > startedAt + (endsAt - startedAt) / 2);
        const room = chance.pick(ROOMS);
        faults++;
        console.log(`fault ${faults}, seed ${chance.seed}: ${fault.name}, in room ${room}`);
        // A separate guest: those of the lanes may be destroyed at any moment.
        const agent = `victim-${faults}`;
        const sandbox_id = await ledger.createSandbox(room, agent, 9700 + faults);
        expect(sandbox_id, `${agent} was created`).not.toBeNull();
        const victim = { room, sandbox_id: String(sandbox_id) };
        if (fault.fatal) ledger.forgive(victim.sandbox_id);
        await fault.run(daemon, victim);
        if (!fault.fatal) expect(await ledger.destroySandbox(victim.sandbox_id, room)).toBe(true);
      }
      const turns = (await Promise.all(lanes)).reduce((sum, each) => sum + each, 0);
      console.log(
        `seed ${chance.seed}: ${turns} guests came and went in ${minutes} minutes, with ${faults} faults; ` +
          `${ledger.acknowledged} answers, ${ledger.unanswered} calls cut off; memory ${memoryOf(memory)}`,
      );
      expect(turns).toBeGreaterThan(minutes);
      expect(await ledger.broken()).toEqual([]);

      // Guests without an acknowledged creation are destroyed with their rooms.
      for (const room of ROOMS) await daemon.ok("DELETE", `/v1/rooms/${room}?drive=delete`);
      await expectAtRest(daemon);
      expect(descriptorKinds(daemon.pid)).toEqual(descriptors);
      expect(growthOf(memory)).toBeLessThan(GROWTH_MIB);
      await daemon.end("SIGTERM");
      expect(daemon.leftovers()).toEqual([]);
    },
    LONG_TIMEOUT_MS,
  ),
);

/** Deals every fault once before any comes again. In the second half the daemon lives on, so that its size can be followed. */
function dealer(chance: Chance): (late: boolean) => Fault {
  let deck: Fault[] = [];
  return (late) => {
    const possible = () => deck.filter(({ name }) => !(late && name === "the daemon is killed"));
    if (possible().length === 0) deck = [...FAULTS];
    const dealt = chance.pick(possible());
    deck = deck.filter((fault) => fault !== dealt);
    return dealt;
  };
}

function onceOver(): () => boolean {
  let callCount = 0;
  return () => callCount++ > 0;
}

type Sample = { pid: number; at: number; mib: number };

/** By how many MiB the last process grew, from the median of its first third to that of its last. */
function growthOf(samples: readonly Sample[]): number {
  const own = samples.filter(({ pid }) => pid === samples.at(-1)?.pid).map(({ mib }) => mib);
  const third = Math.floor(own.length / 3);
  expect(third, "samples of the daemon's memory in a third of its time").toBeGreaterThan(10);
  const median = (values: number[]) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? 0;
  return median(own.slice(-third)) - median(own.slice(0, third));
}

function memoryOf(samples: readonly Sample[]): string {
  const shown = samples.filter((_, index) => index % Math.ceil(samples.length / 12) === 0);
  return `${shown.map(({ mib }) => mib.toFixed(0)).join(" ")} MiB`;
}
