/** Sampling: sequential and in turns, or concurrent. All times are milliseconds. */

/** Rounds before the first that counts: connections are open and code is compiled then. */
const WARM_UPS = 3;

/** How long `run` takes. */
export async function timed(run: () => Promise<unknown>): Promise<number> {
  const startedAt = performance.now();
  await run();
  return performance.now() - startedAt;
}

/**
 * Times each road once per round, one after another, so that other load on the machine falls on all of them alike.
 * Roads get the number of the round; the rounds before 0 are not counted.
 */
export async function takeTurns<Road extends string>(
  rounds: number,
  roads: Record<Road, (round: number) => Promise<unknown>>,
): Promise<Record<Road, number[]>> {
  const names = Object.keys(roads) as Road[];
  const samples = Object.fromEntries(names.map((name) => [name, [] as number[]])) as Record<Road, number[]>;
  for (let round = -WARM_UPS; round < rounds; round++) {
    for (const name of names) {
      const ms = await timed(() => roads[name](round));
      if (round >= 0) samples[name].push(ms);
    }
  }
  return samples;
}

/** Runs 0 … count-1 in `lanes` parallel lanes. Returns the duration of each, and the total. */
export async function inLanes(lanes: number, count: number, run: (index: number) => Promise<unknown>) {
  const samples: number[] = [];
  let next = 0;
  const lane = async () => {
    while (next < count) {
      const index = next++;
      samples.push(await timed(() => run(index)));
    }
  };
  const wallMs = await timed(() => Promise.all(Array.from({ length: lanes }, lane)));
  return { samples, wallMs };
}

/** Runs 0 … count-1, `perSecond` per second, without waiting for earlier ones. Returns the duration of each from when it was due. */
export async function atPace(perSecond: number, count: number, run: (index: number) => Promise<unknown>) {
  const samples: number[] = [];
  const under: Promise<unknown>[] = [];
  const startedAt = performance.now();
  for (let index = 0; index < count; index++) {
    const dueAt = startedAt + (index / perSecond) * 1000;
    const leftMs = dueAt - performance.now();
    if (leftMs > 0) await Bun.sleep(leftMs);
    under.push(run(index).then(() => samples.push(performance.now() - dueAt)));
  }
  await Promise.all(under);
  return samples;
}

/** Durations of moving `bytes` bytes, as MB/s (10⁶ bytes). */
export function megabytesPerSecond(bytes: number, samplesMs: readonly number[]): number[] {
  return samplesMs.map((ms) => bytes / 1e6 / (ms / 1e3));
}
