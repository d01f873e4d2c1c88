/**
 * The scope of each process of a sandbox, and a CID that another machine of the host uses: on a virtual host with systemd and the kernel's
 * vhost-vsock. Takes ten minutes and a package mirror, so it runs if ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { LEFT_OUT, runOnHost } from "./virtual-host.ts";

if (LEFT_OUT !== null) console.log(`the virtual host: left out, because ${LEFT_OUT}`);

const WAITING = "qemu-system-x86";
const SANDBOX = "qemu-system-x86+virtiofsd+virtiofsd";
const TCG_MIB = 128;

/** The running processes, by sandbox, all in their expected scopes. */
const placed = (...names: string[]) => JSON.stringify({ who: names.toSorted(), amiss: [] });

const limitsOf = (memoryMib: number, cpuWeight = 100) =>
  [
    "CPUQuotaPerSecUSec=2s",
    `CPUWeight=${cpuWeight}`,
    "IOWeight=100",
    `MemoryMax=${(memoryMib + 384) * 1024 ** 2}`,
    "MemorySwapMax=0",
    "TasksMax=257",
  ].join(" ");

test.skipIf(LEFT_OUT !== null)(
  "every process of a sandbox is in its scope, and no scope remains",
  () => {
    const results = runOnHost("scopes");
    // In the pool, and taken from it.
    expect(results).toMatchObject({
      ...{ waiting: placed(WAITING), waiting_again: placed(WAITING) },
      ...{
        taken: placed(SANDBOX),
        taken_limits: limitsOf(512 + TCG_MIB),
        taken_is: "True 200",
        refilled: placed(WAITING),
      },
      retired: '{"processes":{},"scopes":[]}',
    });
    // A machine that was late, as on an emulated host, has its whole share of the processors already.
    expect([limitsOf(256 + TCG_MIB, 10), limitsOf(256 + TCG_MIB)]).toContain(results.waiting_limits);
    // Running, with a virtiofsd that was killed, a daemon that was, and another service.
    expect(results).toMatchObject({
      ...{ created: "running", running: placed(SANDBOX), running_limits: limitsOf(256), wrote: "ran" },
      ...{ renewed: placed(SANDBOX), killed: placed(SANDBOX), second: "ran", restarted: placed(SANDBOX) },
      ...{ half_made: placed(SANDBOX), state: "running", destroyed: "200", destroyed_places: placed(), left_over: "0" },
    });
    expect(Number(results.cached_mib)).toBeGreaterThanOrEqual(32);
    // Others have 9200 and 9201.
    expect(results).toMatchObject({
      ...{ cid_9200: "409 guest_cid_in_use 9202", cid_9199: "202 None None", cid_9100: "409 guest_cid_in_use 9101" },
      ...{ two: placed(SANDBOX, SANDBOX), gone: "200" },
    });
  },
  3_600_000,
);
