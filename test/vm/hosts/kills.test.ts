/**
 * The daemon is killed at points between the steps of its work, at random moments, and while it starts. After each restart everything on
 * the host has an owner, and every given answer still holds.
 */
import { mkdirSync, renameSync } from "node:fs";
import { join } from "node:path";
import { expect } from "vitest";
import { FAULT_POINTS, FAULT_VARIABLE } from "../../../daemon/core/fault-points.ts";
import { newId } from "../../../shared/ids.ts";
import type { TestDaemon } from "../../harness/daemon.ts";
import { expectAtRest, violations } from "../../harness/durability/invariants.ts";
import { Ledger } from "../../harness/durability/ledger.ts";
import { shortOrLong, testAlone, until } from "../../harness/guests.ts";
import { Chance } from "../../harness/random.ts";

/** If the work has not reached the point by then, the daemon is killed at that moment instead. */
const ROUND_MS = 15_000;
/** Pause between the calls of a lane: calls that take no time would take the cores from the lanes that start guests. */
const PACE_MS = 25;
const ROOM = "kept";
const LONG_TIMEOUT_MS = 3 * 3600_000;

/** The point of the next kill. */
type Kill = { at: string; fault: string } | { at: string; after_ms: number; starting: boolean };

function nextKill(chance: Chance): Kill {
  const way = chance.next();
  if (way < 0.7) {
    const point = chance.pick(FAULT_POINTS);
    // Points that every request passes are passed several times first.
    const nth = /^(commit|audit)/.test(point) ? chance.whole(1, 40) : chance.whole(1, 2);
    return { at: `${point}@${nth}`, fault: `${point}=kill@${nth}` };
  }
  const starting = way > 0.92;
  const after_ms = starting ? chance.whole(0, 1_200) : chance.whole(0, 4_000);
  return { at: `${after_ms} ms${starting ? " of its start" : ""}`, after_ms, starting };
}

/** All kinds of work concurrently and repeatedly, until the daemon has exited. */
async function work(daemon: TestDaemon, ledger: Ledger, chance: Chance, round: number, until: () => boolean) {
  const cids = { next: 9200 + (round % 40) * 10 };
  const again = async (lane: (turn: number) => Promise<void>) => {
    for (let turn = 0; daemon.runs && !until(); turn++) {
      await lane(turn);
      await Bun.sleep(PACE_MS);
    }
  };
  const text = (turn: number) => `${round}.${turn} `.repeat(chance.whole(1, 40_000));
  await Promise.all([
    again(async (turn) => {
      const made = await ledger.createSandbox(ROOM, `w${round}-${turn}`, cids.next++);
      if (made && ledger.sandboxes.size > 2) await ledger.destroySandbox(made, ROOM);
    }),
    again(() => ledger.exec(chance.pick([...ledger.sandboxes.keys(), ""]))),
    again(() => ledger.sleepAndWake(chance.pick([...ledger.sandboxes.keys(), ""]))),
    again(() => ledger.snapshot(chance.pick([...ledger.sandboxes.keys(), ""]))),
    again((turn) => ledger.write(ROOM, `file-${turn % 3}`, text(turn))),
    again((turn) => ledger.append(ROOM, `log-${round}`, `${round}.${turn} and so on\n`)),
    again(async (turn) => {
      const room = `r${round}-${turn}`;
      await ledger.createRoom(room);
      await ledger.write(room, "deep/file", text(turn));
      await ledger.destroyRoom(room);
    }),
  ]);
}

async function killAt(daemon: TestDaemon, ledger: Ledger, chance: Chance, round: number, kill: Kill): Promise<string> {
  daemon.env[FAULT_VARIABLE] = "fault" in kill ? kill.fault : "";
  const deadline = performance.now() + ("fault" in kill ? ROUND_MS : kill.after_ms);
  const started = daemon.serve().then(
    () => true,
    () => false, // killed while it started
  );
  if ("starting" in kill && kill.starting) {
    await Bun.sleep(kill.after_ms);
    await daemon.end("SIGKILL");
  }
  if (!(await started)) return kill.at;
  let over = false;
  const working = work(daemon, ledger, chance, round, () => over);
  await until(
    "the daemon has exited, or the time is over",
    () => !daemon.runs || performance.now() > deadline,
    ROUND_MS * 2,
  );
  over = true;
  const reached = !daemon.runs;
  await daemon.end("SIGKILL");
  await working;
  return reached || !("fault" in kill) ? kill.at : `${kill.at} was not reached: killed after ${ROUND_MS} ms`;
}

/** Sandboxes without an answer to their create: whatever their state, they can be destroyed. */
async function clearUnanswered(daemon: TestDaemon, ledger: Ledger): Promise<void> {
  for (const room of (await daemon.ok("GET", "/v1/rooms?limit=1000")).items) {
    const { items } = await daemon.ok("GET", `/v1/rooms/${room.room_id}/sandboxes?limit=1000`);
    for (const { sandbox_id } of items) {
      if (!ledger.sandboxes.has(sandbox_id))
        await daemon.ok("DELETE", `/v1/rooms/${room.room_id}/sandboxes/${sandbox_id}`);
    }
    if (!ledger.rooms.has(room.room_id)) await daemon.ok("DELETE", `/v1/rooms/${room.room_id}?drive=delete`);
  }
  // The oldest but two: the guests of all rounds would not fit the host.
  for (const sandboxId of [...ledger.sandboxes.keys()].slice(1, -1)) {
    expect(await ledger.destroySandbox(sandboxId, ROOM)).toBe(true);
  }
}

testAlone(
  "random kills leave nothing, and lose nothing acknowledged",
  { env: { ROOMD_POOL_SIZE: "1" } },
  async (daemon) => {
    const chance = new Chance();
    const count = Number(process.env.ROOMD_TEST_KILLS ?? shortOrLong("kills", 3, 200));
    const ledger = new Ledger(daemon);
    await ledger.createRoom(ROOM);
    await ledger.createSandbox(ROOM, "keeper", 9100);
    await expectAtRest(daemon);
    for (let round = 1; round <= count; round++) {
      const title = () => `kill ${round} of ${count}, seed ${chance.seed}`;
      await daemon.end(chance.pick(["SIGKILL", "SIGTERM"]));
      const at = await killAt(daemon, ledger, chance, round, nextKill(chance));
      daemon.env[FAULT_VARIABLE] = "";
      await daemon.serve();
      console.log(`${title()}: ${at}; ${ledger.acknowledged} answers so far, ${ledger.unanswered} cut off`);
      await expectAtRest(daemon).catch((error: unknown) => {
        throw new Error(`${title()}, at ${at}`, { cause: error });
      });
      expect(await ledger.broken(), `${title()}, at ${at}`).toEqual([]);
      await clearUnanswered(daemon, ledger);
      await expectAtRest(daemon);
    }
    expect(ledger.acknowledged).toBeGreaterThan(count);
    for (const room of [...ledger.rooms.keys()]) await ledger.destroyRoom(room);
    await expectAtRest(daemon);
    await daemon.end("SIGTERM");
    expect(daemon.leftovers()).toEqual([]);
  },
  LONG_TIMEOUT_MS,
);

testAlone("leftovers without an owner are found", { env: { ROOMD_POOL_SIZE: "0" } }, async (daemon) => {
  await daemon.room("found");
  const { sandbox_id } = await daemon.sandbox("found", "agent", 9100);
  await expectAtRest(daemon);
  const disk = join(daemon.dataDir, "sandboxes", sandbox_id, `disk-${sandbox_id}.qcow2`);
  const stray = newId("sbx");
  mkdirSync(join(daemon.runtimeDir, "g", stray));
  mkdirSync(join(daemon.dataDir, "rooms", "stray"));
  renameSync(disk, `${disk}.gone`);
  const found = (await violations(daemon)).join("\n");
  expect(found).toContain(`${stray} has no row`);
  expect(found).toContain("rooms/stray belongs to no room");
  expect(found).toContain(`running sandbox ${sandbox_id} lacks ${disk}`);
});
