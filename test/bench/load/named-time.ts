/** Share of a daemon's event loop time that is charged to named owners: the rest has no owner, and is not throttled. */
import { readFileSync } from "node:fs";
import type { TestDaemon } from "../../harness/daemon.ts";
import type { Report } from "../report.ts";

const LEAST_PERCENT = 90;
/** Of a loop that was busy for less nothing is known. */
const LEAST_BUSY_MS = 1_000;
/** A thread that waits for a processor after it is woken does so for no owner: with more of that the share has no limit. */
const MAX_WAITED = 0.05;

interface LoopTimes {
  /** Charged to owners. */
  named: number;
  /** The thread's own. */
  ran: number;
  /** In which it waited for a processor: in pieces that is a part of `named`. */
  waited: number;
}

/** Figures of daemons from their start on, by their process. */
export class NamedTime {
  readonly #before = new Map<number, { daemon: TestDaemon; at: LoopTimes }>();

  async watch(daemon: TestDaemon): Promise<void> {
    this.#before.set(daemon.pid, { daemon, at: await timesOf(daemon) });
  }

  /** Adds the measure, unless all daemons were idle or have been replaced. */
  async addTo(report: Report): Promise<void> {
    const shares: number[] = [];
    let isQuiet = true;
    for (const [pid, { daemon, at }] of this.#before) {
      if (!daemon.runs || daemon.pid !== pid) continue;
      const now = await timesOf(daemon);
      const [named, ran, waited] = [now.named - at.named, now.ran - at.ran, now.waited - at.waited];
      if (ran < LEAST_BUSY_MS) continue;
      shares.push(Math.min(100, (named / (ran + waited)) * 100));
      isQuiet &&= waited < MAX_WAITED * ran;
    }
    if (shares.length === 0) return;
    report.add("named_loop_time", "%", shares, undefined, isQuiet ? { of: "p50", least: LEAST_PERCENT } : undefined);
  }
}

async function timesOf(daemon: TestDaemon): Promise<LoopTimes> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  const seconds = [...text.matchAll(/^roomd_loop_busy_seconds_total(?:\{[^}]*\})? (\S+)$/gm)].map(([, each]) =>
    Number(each),
  );
  const [ran = "", waited = ""] = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/schedstat`, "utf8").split(" ");
  const named = seconds.reduce((sum, each) => sum + each, 0) * 1_000;
  return { named, ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
}
