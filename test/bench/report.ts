/** Benchmark and its report: named measures, some compared with a yardstick of the same run. */
import { cpus, loadavg, totalmem } from "node:os";
import type { TestDaemon, TestDaemonOptions } from "../harness/daemon.ts";
import { type Summary, summarize } from "./load/stats.ts";

/** `%` is of one core; `1` is a number of things. */
export type Unit = "ms" | "MB/s" | "1/s" | "MiB" | "×" | "%" | "1" | "bytes" | "tokens";

/** Limit of a measure: at one of its percentiles, or of its ratio to its yardstick. */
export type Limit = { of: "p50" | "p95" | "p99" | "ratio" } & ({ most: number } | { least: number });

export interface Measure extends Summary {
  unit: Unit;
  /** The measure that this one is held against, and this one's p50 over that one's. */
  yardstick?: string;
  ratio?: number;
  limit?: Limit;
}

export interface Bench {
  report: Report;
  /** Number of repetitions; the benchmark has its own default. */
  count: number | undefined;
  /** Maximum memory of one sandbox, if the benchmark measures several sizes. */
  mostMemoryMib: number | undefined;
  /** Attacks to measure, if the benchmark has several. */
  rows: readonly string[] | undefined;
  /** A daemon that is stopped when the benchmark ends, however it ends. */
  start(options: TestDaemonOptions): Promise<TestDaemon>;
  /** Until the disposal, a daemon's loop time is part of the measure of named time; that of `start` is so until the end. */
  watch(daemon: TestDaemon): Promise<AsyncDisposable>;
}

type Added = Summary & { unit: Unit; yardstick: string | undefined; limit?: Limit };

export class Report {
  readonly benchmark: string;
  readonly #measures = new Map<string, Added>();
  /** Acceleration of the guests, once a daemon has reported it. */
  acceleration: string | null = null;
  readonly #startedAt = new Date();
  readonly #load = loadavg()[0] ?? 0;

  constructor(benchmark: string) {
    this.benchmark = benchmark;
  }

  /** Adds a measure. Throws when it has no figures. */
  add(name: string, unit: Unit, samples: readonly number[], yardstick?: string, limit?: Limit): void {
    try {
      this.#measures.set(name, { unit, ...summarize(samples), yardstick, ...(limit && { limit }) });
    } catch (error) {
      throw new Error(`${name} was not measured`, { cause: error });
    }
  }

  /** By name, in the order they were added. Throws when there are none, or one lacks its yardstick. */
  measures(): Record<string, Measure> {
    if (this.#measures.size === 0) throw new Error(`${this.benchmark} measured nothing`);
    return Object.fromEntries(
      [...this.#measures].map(([name, { yardstick, ...figures }]) => {
        if (yardstick === undefined) return [name, figures];
        const held = this.#measures.get(yardstick);
        if (!held) throw new Error(`${name} has no yardstick ${yardstick}`);
        return [name, { ...figures, yardstick, ratio: figures.p50 / held.p50 }];
      }),
    );
  }

  /** Which limits are not kept, in words. */
  missed(): string[] {
    return Object.entries(this.measures()).flatMap(([name, measure]) => missedBy(name, measure));
  }

  /** One line, for programs. */
  json(): string {
    const facts = {
      benchmark: this.benchmark,
      started_at: this.#startedAt.toISOString(),
      host: { cores: cpus().length, memory_mib: Math.round(totalmem() / 1024 ** 2), load_before: this.#load },
      acceleration: this.acceleration,
      measures: this.measures(),
    };
    return JSON.stringify(facts, (_, value: unknown) =>
      typeof value === "number" ? Number(value.toPrecision(5)) : value,
    );
  }
}

function missedBy(name: string, measure: Measure): string[] {
  const { limit } = measure;
  if (!limit) return [];
  const figure = measure[limit.of];
  if (figure === undefined) throw new Error(`${name} has no ${limit.of} to be limited`);
  const [bound, word, isKept] =
    "most" in limit ? [limit.most, "most", figure <= limit.most] : [limit.least, "least", figure >= limit.least];
  const shown = (value: number) => Number(value.toPrecision(4));
  const unit = limit.of === "ratio" ? "×" : measure.unit;
  return isKept ? [] : [`${name}: ${limit.of} is ${shown(figure)} ${unit}, and is to be at ${word} ${shown(bound)}`];
}
