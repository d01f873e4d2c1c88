/**
 * Attacks on the event loop, one at a time, and the latency that another organization sees: its p99 is at most twice that of an idle
 * service, compared with a bare server measured in parallel, and no turn takes 20 ms of processor time. The p99 of a busy host is noisy:
 * the best of three attempts counts.
 */
import { expect, test } from "vitest";
import { ALLOWANCE } from "../../harness/event-loop/turns.ts";
import { LONG } from "../../harness/guests.ts";
import type { Measured } from "../../harness/hostile/beside.ts";
import { HostileRow, ROWS } from "../../harness/hostile/row.ts";
import { sampled } from "../../harness/sampled.ts";

const ATTACK_MS = LONG ? 60_000 : 2_000;
const ATTEMPTS = 3;

const rounded = (ms: number) => Math.round(ms * 10) / 10;

function told(row: string, { quiet, beside, most, longest, answers }: Measured): string {
  const turn = longest ? `${longest.cpu_ms} ms of ${longest.label}` : "under 5 ms";
  return [
    `${row}: p99 ${rounded(quiet.me)} quiet, ${rounded(beside.me)} beside (most ${rounded(ALLOWANCE * most)})`,
    `bare ${rounded(quiet.bare)}, ${rounded(beside.bare)}; longest turn ${turn}; answers ${JSON.stringify(answers)}`,
  ].join("; ");
}

test.each(sampled("hostile rows", ROWS))(
  "%s",
  async (row) => {
    // The daemon's stop fails by a long turn that is not listed for this attack.
    await using attacked = await HostileRow.start(row);
    for (let attempt = 1; ; attempt++) {
      const measured = await attacked.measure(ATTACK_MS);
      console.log(told(row, measured));
      expect(Object.values(measured.answers).reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0);
      expect(Object.keys(measured.answers)).toEqual(expect.arrayContaining([...(attacked.attack.expected ?? [])]));
      const most = ALLOWANCE * measured.most;
      if (measured.beside.me <= most) return;
      if (attempt === ATTEMPTS) expect(measured.beside.me, told(row, measured)).toBeLessThanOrEqual(most);
    }
  },
  20 * 60_000,
);
