/** Rehearsals of a clone: a line on its console starts one, and nothing else does. */
import { closeSync, readlinkSync, writeSync } from "node:fs";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openPseudoTerminal, type PseudoTerminal } from "../../../guest-agent/libc.ts";
import { PoolWarmUp } from "../../../guest-agent/pool-warm-up.ts";
import { until } from "../../harness/guests.ts";

let terminal: PseudoTerminal;
let rehearsal: PoolWarmUp;
let rehearsed: number;
/** Signals that this process has got; the rehearsal's own handler comes before. */
let signals: number;
const count = () => {
  signals++;
};

beforeEach(() => {
  rehearsed = 0;
  signals = 0;
  terminal = openPseudoTerminal();
  rehearsal = new PoolWarmUp(
    async () => {
      rehearsed++;
    },
    async () => {},
  );
  rehearsal.listen(readlinkSync(`/proc/self/fd/${terminal.slave}`));
  process.on("SIGIO", count);
});
afterEach(() => {
  rehearsal.end();
  process.off("SIGIO", count);
  for (const fd of [terminal.slave, terminal.master]) closeSync(fd);
});

const type = () => writeSync(terminal.master, "go\n");
const signalled = (times: number) => until(`signal ${times} is received`, () => signals >= times);

test("a line starts one, once", async () => {
  type();
  await until("the warm-up has run", () => rehearsed === 1);
  process.kill(process.pid, "SIGIO");
  await signalled(2);
  expect(rehearsed).toBe(1);
});

test("a signal without a line starts none", async () => {
  process.kill(process.pid, "SIGIO");
  await signalled(1);
  expect(rehearsed).toBe(0);
  type();
  await until("the warm-up has run", () => rehearsed === 1);
});

test("once it is cancelled a line starts none either", async () => {
  rehearsal.end();
  type();
  process.kill(process.pid, "SIGIO");
  await signalled(1);
  expect(rehearsed).toBe(0);
});
