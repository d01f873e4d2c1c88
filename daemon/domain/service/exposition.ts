/** Prometheus text format 0.0.4: families of samples under a line of help and one of type. */
import type { Histogram } from "../../core/histogram.ts";

export const TYPE = "text/plain; version=0.0.4; charset=utf-8";

type Labels = Record<string, string>;
/** Suffix of the family's name, labels, value. */
export type Sample = [suffix: string, labels: Labels, value: number];

export function family(name: string, type: "gauge" | "counter" | "histogram", help: string, samples: Sample[]): string {
  const lines = samples.map(([suffix, labels, value]) => `${name}${suffix}${shown(labels)} ${value}\n`);
  return `# HELP ${name} ${help}\n# TYPE ${name} ${type}\n${lines.join("")}`;
}

export const alone = (value: number): Sample[] => [["", {}, value]];

/** One sample per word; the word is the label's value. */
export function each(label: string, values: Iterable<readonly [word: string, value: number]>): Sample[] {
  return [...values].map(([word, value]) => ["", { [label]: word }, value]);
}

export function distribution(histogram: Histogram, labels: Labels = {}): Sample[] {
  const counts = histogram.atMost();
  const bounds = [...histogram.bounds.map(String), "+Inf"];
  return [
    ...counts.map((count, at): Sample => ["_bucket", { ...labels, le: bounds[at] ?? "+Inf" }, count]),
    ["_sum", labels, histogram.sum],
    ["_count", labels, counts.at(-1) ?? 0],
  ];
}

/** JSON escapes the same characters as the format does in a label, and these values have no others. */
function shown(labels: Labels): string {
  const pairs = Object.entries(labels).map(([name, value]) => `${name}=${JSON.stringify(value)}`);
  return pairs.length === 0 ? "" : `{${pairs.join()}}`;
}
