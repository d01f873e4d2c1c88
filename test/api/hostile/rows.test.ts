/**
 * Attacks on the event loop, one at a time, and the latency that another organization sees: its p99 is at most twice that of an idle
 * service, compared with a bare server measured in parallel, and no turn takes 20 ms of processor time. The p99 of a busy host is noisy:
 * the best of three attempts counts.
 *
 * Two attacks are missing because they need a service of several hosts: messages in 2,000 rooms, and a directory with 2 million rows.
 */
import { resolve } from "node:path";
import { expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";
import { holdTurns } from "../../harness/event-loop/turns.ts";
import { LONG } from "../../harness/guests.ts";
import type { Attack } from "../../harness/hostile/attack.ts";
import { type Measured, measureBeside } from "../../harness/hostile/beside.ts";
import { MemoryDisk } from "../../harness/hostile/memory-disk.ts";
import { sampled } from "../../harness/sampled.ts";

/** Files of this folder: each is an attack. */
const ROWS = [
  "pipelining",
  "mcp",
  "filter",
  "filtered-waits",
  "waits",
  "everyone",
  "full-inboxes",
  "barrier-waits",
  "barrier-generations",
  "recipients",
  "broken-barriers",
  "tiny-chunks",
  "writes",
  "guest-frames",
  "live-messages",
  "resizes",
  "audit",
  "room-files",
  "backup",
  "credits",
  "ssh-logins",
  "many-organizations",
];
const ATTACK_MS = LONG ? 60_000 : 2_000;
const EVERY_MS = 5;
const ATTEMPTS = 3;

const rounded = (ms: number) => Math.round(ms * 10) / 10;

function told(row: string, { quiet, beside, most, longest, answers }: Measured): string {
  const turn = longest ? `${longest.cpu_ms} ms of ${longest.label}` : "under 5 ms";
  return [
    `${row}: p99 ${rounded(quiet.me)} quiet, ${rounded(beside.me)} beside (most ${rounded(most)})`,
    `bare ${rounded(quiet.bare)}, ${rounded(beside.bare)}; longest turn ${turn}; answers ${JSON.stringify(answers)}`,
  ].join("; ");
}

test.each(sampled("hostile rows", ROWS))(
  "%s",
  async (row) => {
    const file = resolve(import.meta.dirname, `${row}.ts`);
    const { default: attack } = (await import(file)) as { default: Attack };
    // The daemon's stop fails by a long turn that is not listed for this attack.
    holdTurns(file);
    using disk = new MemoryDisk();
    await using daemon = await TestDaemon.start({ env: attack.env ?? {}, prepare: disk.hold });
    await using finished = new AsyncDisposableStack();
    finished.defer(async () => await attack.finish?.());
    const prepared = (await attack.prepare?.(daemon)) ?? null;
    const calls = ATTACK_MS / (attack.everyMs ?? EVERY_MS);
    for (let attempt = 1; ; attempt++) {
      const measured = await measureBeside(daemon, file, attack, prepared, calls);
      console.log(told(row, measured));
      expect(Object.values(measured.answers).reduce((sum, each) => sum + each, 0)).toBeGreaterThan(0);
      expect(Object.keys(measured.answers)).toEqual(expect.arrayContaining([...(attack.expected ?? [])]));
      if (measured.beside.me <= measured.most) return;
      if (attempt === ATTEMPTS) expect(measured.beside.me, told(row, measured)).toBeLessThanOrEqual(measured.most);
    }
  },
  20 * 60_000,
);
