/** Many commands that print as fast as they can: the daemon passes it all on and keeps none of it. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { summarize } from "../bench/load/stats.ts";
import { executionsPath, startFlood } from "../harness/event-loop/streams.ts";
import { shortOrLong, until, withGuests } from "../harness/guests.ts";

const ROOM = "floods";
const FLOODS = 8;
/** Memory growth during the flood, in which sent data waits for the collector: mostly, and at any time; and after the flood. */
const MAX_GROWTH_MB = { median: 128, peak: 256, after: 64 };
/** The runtime's collector comes by an idle heap every half minute. */
const LET_GO_MS = 60_000;
const SAMPLE_MS = 100;

const residentMb = (pid: number): number =>
  (Number(/^VmRSS:\s+(\d+) kB$/m.exec(readFileSync(`/proc/${pid}/status`, "utf8"))?.[1]) * 1024) / 1e6;

withGuests("commands that flood", {}, (guests) => {
  test(`\`yes\` in ${FLOODS} executions, all of them read, leaks nothing in the daemon, and other calls continue`, async () => {
    const { daemon } = guests;
    const seconds = shortOrLong("seconds of flood", 5, 30);
    await daemon.room(ROOM);
    for (const name of ["flooding", "other"]) await daemon.sandbox(ROOM, name, guests.cid());
    for (const name of ["flooding", "other"]) await daemon.sh(ROOM, name, "true");
    const path = executionsPath(ROOM, "flooding");
    // Code that is compiled once is no flood's.
    await (await startFlood(daemon, path, 1000)).ended;
    const before = residentMb(daemon.pid);

    const floods = Array.from({ length: FLOODS }, async () => {
      const { exec_id, ended } = await startFlood(daemon, path, seconds * 1000);
      const bytes = await ended;
      const { timed_out, stdout_bytes } = await daemon.ok("GET", `${path}/${exec_id}`);
      return { bytes, timed_out, stdout_bytes };
    });
    let over = false;
    const ended = Promise.all(floods).finally(() => {
      over = true;
    });
    const samples: number[] = [];
    const sampling = setInterval(() => samples.push(residentMb(daemon.pid)), SAMPLE_MS);
    let execs = 0;
    while (!over) {
      expect(await daemon.sh(ROOM, "other", "hostname")).toBe("other");
      execs++;
    }
    const results = await ended.finally(() => clearInterval(sampling));
    const { p50: median, max: peak } = summarize(samples);
    const total = results.reduce((sum, { stdout_bytes }) => sum + stdout_bytes, 0);
    const probe = () => {
      const now = residentMb(daemon.pid);
      return now - before < MAX_GROWTH_MB.after && now;
    };
    const after = await until("the daemon has released the memory", probe, LET_GO_MS);
    const figures = { seconds, megabytes: total / 1e6, execs, samples: samples.length, before, median, peak, after };
    console.log(`${FLOODS} floods: ${JSON.stringify(figures, (_, value) => Math.round(value) || value)}`);
    for (const { bytes, timed_out, stdout_bytes } of results) {
      expect(timed_out).toBe(true);
      // Each byte came, as base64 in lines of JSON.
      expect(bytes).toBeGreaterThan((stdout_bytes * 4) / 3);
    }
    expect(median - before).toBeLessThan(MAX_GROWTH_MB.median);
    expect(peak - before).toBeLessThan(MAX_GROWTH_MB.peak);
    expect(execs).toBeGreaterThan(seconds);
  });
});
