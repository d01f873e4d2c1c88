/** Logs of a guest's processes are bounded while they keep writing. */
import { mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { boundLog, endProcess, startProcess } from "../../../daemon/host/process.ts";
import { until } from "../../harness/guests.ts";

const MIB = 1024 * 1024;

test("a log above its limit is truncated, and its process continues at the new end", async () => {
  const directory = mkdtempSync("/tmp/roomd-u-");
  const log = join(directory, "vmm.log");
  const go = join(directory, "go");
  const script = `head -c ${5 * MIB} /dev/zero; until test -e ${go}; do sleep 0.02; done; echo after; exec sleep 600`;
  const process = startProcess("writer", ["sh", "-c", script], log);
  try {
    await until("5 MiB are written", () => statSync(log).size === 5 * MIB);
    expect(boundLog(log)).toBe(true);
    expect(statSync(log).size).toBe(0);
    writeFileSync(go, "");
    await until("more is written", () => statSync(log).size > 0);
    expect(readFileSync(log, "utf8")).toBe("after\n");
    truncateSync(log, 4 * MIB);
    expect(boundLog(log)).toBe(false);
    expect(statSync(log).size).toBe(4 * MIB);
    expect(boundLog(join(directory, "none"))).toBe(false);
  } finally {
    await endProcess(process);
    rmSync(directory, { recursive: true, force: true });
  }
});
