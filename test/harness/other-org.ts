/**
 * A second organization next to an attacker: its sequential requests during the attacker's work, compared with their latency when the host
 * is idle.
 */
import { expect } from "vitest";
import { summarize } from "../bench/load/stats.ts";
import type { TestDaemon } from "./daemon.ts";
import { LONG } from "./guests.ts";

/** Duration of the baseline before each kind of work: the host's other load changes by the minute. */
const QUIET_MS = LONG ? 10_000 : 1_000;
/** Minimum duration of the measurement during the work. */
const LEAST_MS = 1_000;
/** Maximum ratio of a slow request's latency to that of a slow request when the host is idle. */
const MAX_TIMES = 2;

export class OtherOrg {
  readonly #daemon: TestDaemon;
  readonly #key: string;

  private constructor(daemon: TestDaemon, key: string) {
    this.#daemon = daemon;
    this.#key = key;
  }

  static async make(daemon: TestDaemon): Promise<OtherOrg> {
    const authorization = `Bearer ${daemon.operatorKey}`;
    const made = await daemon.api("POST", "/v1/orgs", { name: "other" }, { authorization });
    return new OtherOrg(daemon, made.body.api_key);
  }

  /** Its requests, one after another, for a number of milliseconds or until the work is done. */
  async ask(during: number | Promise<unknown>) {
    const samples: number[] = [];
    let isOver = false;
    const over = typeof during === "number" ? Bun.sleep(during) : during;
    const ended = over.finally(() => {
      isOver = true;
    });
    while (!isOver) {
      const began = performance.now();
      const answer = await fetch(`${this.#daemon.url}/v1/me`, { headers: { authorization: `Bearer ${this.#key}` } });
      await answer.arrayBuffer();
      expect(answer.status).toBe(200);
      samples.push(performance.now() - began);
      // A client that waits for nothing takes the loop's turns itself.
      await Bun.sleep(2);
    }
    await ended;
    return summarize(samples);
  }

  /**
   * Asserts the cost of the work for it, compared with its latency when the host is idle; if the work consists of many calls, compared with
   * the cost of ordinary calls `alike`, which continue until `done` returns true.
   */
  async feels(
    description: string,
    work: () => Promise<unknown>,
    alike?: (done: () => boolean) => Promise<unknown>,
  ): Promise<void> {
    const quiet = (await this.ask(QUIET_MS)).p99;
    const until = performance.now() + QUIET_MS;
    const least = alike ? (await this.ask(alike(() => performance.now() > until))).p99 : quiet;
    const began = performance.now();
    // Work that is over immediately is still measured for a while: the slowest of five requests is not significant.
    const { p50, p99, count } = await this.ask(Promise.all([work(), Bun.sleep(LEAST_MS)]));
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const ms = (n: number) => `${n.toFixed(2)} ms`;
    console.log(
      `${description} (${seconds} s): ${count} requests of others, p50 ${ms(p50)}, p99 ${ms(p99)}; quiet p99 ${ms(quiet)}` +
        (alike ? `, the same calls where they are nothing special p99 ${ms(least)}` : ""),
    );
    // On a host that is busy with other tests requests wait for a core: only the long run, which has it alone, judges by time.
    if (LONG) expect.soft(p99, description).toBeLessThanOrEqual(MAX_TIMES * Math.max(quiet, least));
  }
}
