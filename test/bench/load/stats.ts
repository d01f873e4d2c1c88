/** Summary statistics of samples. */

export interface Summary {
  count: number;
  p50: number;
  p95: number;
  p99: number;
  min: number;
  max: number;
}

/** Percentiles by nearest rank: each is a sample that was really taken. Throws unless there are samples, all numbers. */
export function summarize(samples: readonly number[]): Summary {
  const sorted = samples.toSorted((a, b) => a - b);
  const at = (percent: number): number => {
    const sample = sorted[Math.max(0, Math.ceil((percent / 100) * sorted.length) - 1)];
    if (sample === undefined) throw new Error("there are no samples");
    return sample;
  };
  if (!sorted.every(Number.isFinite)) throw new Error(`some samples are no numbers: ${samples.join(" ")}`);
  return { count: sorted.length, p50: at(50), p95: at(95), p99: at(99), min: at(0), max: at(100) };
}
