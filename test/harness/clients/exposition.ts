/** A strict parser of /metrics: text format 0.0.4, as far as this service uses it. */
import { expect } from "vitest";

export interface Sample {
  name: string;
  labels: Record<string, string>;
  value: number;
  type: string;
}

const SUFFIXES: Record<string, readonly string[]> = {
  gauge: [""],
  counter: [""],
  histogram: ["_bucket", "_sum", "_count"],
};
const SAMPLE = /^([a-z_]+)(?:\{((?:[a-z_]+="[^"\\\n]*",?)+)\})? (\d+(?:\.\d+)?(?:e[+-]\d+)?)$/;

/** Throws on anything outside text format 0.0.4, as far as this service uses it. */
export function parseMetrics(text: string): Sample[] {
  expect(text.endsWith("\n")).toBe(true);
  const samples: Sample[] = [];
  const families = new Set<string>();
  const seen = new Set<string>();
  const lines = text.split("\n").slice(0, -1);
  let family = "";
  let type = "";
  let suffixes: readonly string[] = [];
  for (const [at, line] of lines.entries()) {
    const help = /^# HELP ([a-z_]+) \S.*$/.exec(line)?.[1];
    const [, typed, kind] = /^# TYPE ([a-z_]+) (gauge|counter|histogram)$/.exec(line) ?? [];
    if (help) {
      expect(families.has(help), `${help} comes twice`).toBe(false);
      families.add(help);
      family = help;
      suffixes = [];
    } else if (typed && kind) {
      expect([typed, lines[at - 1]?.startsWith(`# HELP ${typed} `)]).toEqual([family, true]);
      type = kind;
      suffixes = SUFFIXES[kind] ?? [];
      if (kind === "counter") expect(typed).toMatch(/_total$/);
    } else {
      const [, name = "", labels = "", value] = SAMPLE.exec(line) ?? [];
      expect(
        suffixes.map((suffix) => family + suffix),
        line,
      ).toContain(name);
      expect(seen.has(name + labels), line).toBe(false);
      seen.add(name + labels);
      const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key = "", text = ""]) => [key, text]);
      samples.push({ name, labels: Object.fromEntries(pairs), value: Number(value), type });
    }
  }
  return samples;
}
