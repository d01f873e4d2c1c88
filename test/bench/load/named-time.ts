/** Share of daemons' event loop time that is charged to named owners: the rest has no owner, and is not throttled. */
import { readFileSync } from "node:fs";
import type { TestDaemon } from "../../harness/daemon.ts";
import type { Report } from "../report.ts";

const LEAST_PERCENT = 90;
/** Of loops that were busy for less nothing is known. */
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

/** Sum over all watched daemons. */
export class NamedTime {
  readonly #sum: LoopTimes = { named: 0, ran: 0, waited: 0 };

  /** Until the disposal, unless the daemon is replaced before, or is of a build without this metric. */
  async watch(daemon: TestDaemon): Promise<AsyncDisposable> {
    const { pid } = daemon;
    const before = await timesOf(daemon);
    return {
      [Symbol.asyncDispose]: async () => {
        if (!before || !daemon.runs || daemon.pid !== pid) return;
        const now = await timesOf(daemon);
        for (const each of ["named", "ran", "waited"] as const) this.#sum[each] += (now?.[each] ?? 0) - before[each];
      },
    };
  }

  /** Adds the measure, unless all daemons were idle. */
  addTo(report: Report): void {
    const { named, ran, waited } = this.#sum;
    if (ran < LEAST_BUSY_MS) return;
    const share = Math.min(100, (named / (ran + waited)) * 100);
    const isQuiet = waited < MAX_WAITED * ran;
    report.add("named_loop_time", "%", [share], undefined, isQuiet ? { of: "p50", least: LEAST_PERCENT } : undefined);
  }
}

async function timesOf(daemon: TestDaemon): Promise<LoopTimes | null> {
  const text = await (await fetch(`${daemon.url}/metrics`)).text();
  const seconds = [...text.matchAll(/^roomd_loop_busy_seconds_total(?:\{[^}]*\})? (\S+)$/gm)];
  if (seconds.length === 0) return null;
  const [ran = "", waited = ""] = readFileSync(`/proc/${daemon.pid}/task/${daemon.pid}/schedstat`, "utf8").split(" ");
  const named = seconds.reduce((sum, [, each]) => sum + Number(each), 0) * 1_000;
  return { named, ran: Number(ran) / 1e6, waited: Number(waited) / 1e6 };
}
