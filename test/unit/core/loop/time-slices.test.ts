/** Long work in pieces, by simulation with a virtual clock. */
import { expect, test } from "vitest";
import type { OwnerName } from "../../../../daemon/core/loop/owner.ts";
import { Pieces } from "../../../../daemon/core/loop/time-slices.ts";
import { Simulation } from "./simulation.ts";

/** Computes without end, 0.1 ms at a time. */
async function compute(simulation: Simulation, owner: OwnerName): Promise<void> {
  const pieces = new Pieces(simulation.time, owner, "work");
  while (simulation.now < 1_000) {
    const turn = pieces.next();
    if (turn) await turn;
    simulation.compute(0.1);
  }
}

test("a piece takes 2 ms, and owners get equal time however many tasks they have", async () => {
  const simulation = new Simulation();
  simulation.at(0, () => {
    for (let works = 0; works < 20; works++) void compute(simulation, "org:many");
    void compute(simulation, "org:one");
  });
  await simulation.run(1_000);
  const longest = Math.max(...simulation.pieces.map(({ ms }) => ms));
  expect(longest).toBeGreaterThan(1.9);
  expect(longest).toBeLessThan(2.2);
  expect(simulation.idleMs).toBe(0);
  const { used } = simulation.time;
  expect(used.get("org:one")).toBeGreaterThan(450);
  expect(used.get("org:many")).toBeGreaterThan(450);
});

test("`turn` always waits for a piece, and the signal ends the work with its reason", async () => {
  const simulation = new Simulation();
  const end = new AbortController();
  const pieces = new Pieces(simulation.time, "org:a", "work", { signal: end.signal });
  let others = 0;
  simulation.at(0, () => others++);
  const turn = pieces.turn().then(() => others);
  await simulation.run(1);
  expect(await turn).toBe(1);
  const ended = pieces.turn().catch((error: Error) => error.message);
  end.abort(new Error("the room has ended"));
  await simulation.run(2);
  expect(await ended).toBe("the room has ended");
});
