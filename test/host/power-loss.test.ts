/**
 * Power losses as the device of a data_dir sees them, with ext4 and XFS: on a virtual host with a kernel that logs the writes to the
 * device. Takes ten minutes and a package mirror, so it runs if ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { LEFT_OUT, runOnHost } from "./virtual-host.ts";

if (LEFT_OUT !== null) console.log(`losses of power of a virtual host: left out, because ${LEFT_OUT}`);

test.skipIf(LEFT_OUT !== null)("each state of the device has all acknowledged and all read data", () => {
  const results = runOnHost("power-loss");
  for (const type of ["ext4", "xfs"]) {
    console.log(`lost power: ${type} ${results[type]}`);
    const { broken, states, facts, flushes, missed } = JSON.parse(results[type] ?? "{}");
    expect({ type, broken }).toEqual({ type, broken: [] });
    // Before the first flush of the work nothing of it is there.
    expect([states, facts > 100, flushes > 100, missed > 100]).toEqual([20, true, true, true]);
  }
});
