/**
 * Owns another organization beside an attacker: its requests, one after another, while the attacker works, held against how long
 * they take when all is quiet.
 */
import { expect } from "vitest";
import { summarize } from "../bench/stats.ts";
import type { TestDaemon } from "./daemon.ts";
import { LONG } from "./guests.ts";

/** How long it is watched before each kind of work: what else the host does changes by the minute. */
const QUIET_MS = LONG ? 10_000 : 1_000;
/** And during it at least so long. */
const LEAST_MS = 1_000;
/** A slow request takes at most so many times as long as a slow one when all is quiet. */
const MOST_TIMES = 2;

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

  /** Its requests, one after another, for so many milliseconds or until the work is done. */
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
   * What the work costs it, beside what it waits when all is quiet; where the work consists of many calls, beside what calls
   * `alike` cost that are nothing special, and go on until they are told that it is enough.
   */
  async feels(
    what: string,
    work: () => Promise<unknown>,
    alike?: (done: () => boolean) => Promise<unknown>,
  ): Promise<void> {
    const quiet = (await this.ask(QUIET_MS)).p99;
    const until = performance.now() + QUIET_MS;
    const least = alike ? (await this.ask(alike(() => performance.now() > until))).p99 : quiet;
    const began = performance.now();
    // What is over at once is watched for a while all the same: the slowest of five requests says nothing.
    const { p50, p99, count } = await this.ask(Promise.all([work(), Bun.sleep(LEAST_MS)]));
    const seconds = ((performance.now() - began) / 1000).toFixed(1);
    const ms = (n: number) => `${n.toFixed(2)} ms`;
    console.log(
      `${what} (${seconds} s): ${count} requests of others, p50 ${ms(p50)}, p99 ${ms(p99)}; quiet p99 ${ms(quiet)}` +
        (alike ? `, the same calls where they are nothing special p99 ${ms(least)}` : ""),
    );
    // On a host that is busy with other tests requests wait for a core: only the long run, which has it alone, judges by time.
    if (LONG) expect.soft(p99, what).toBeLessThanOrEqual(MOST_TIMES * Math.max(quiet, least));
  }
}
