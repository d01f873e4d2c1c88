/**
 * A user of the host that holds vsock ports, against the installed service: on a virtual host with systemd, KVM and the kernel's
 * vhost-vsock. Takes some ten minutes and a package mirror, so it runs if ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { LEFT_OUT, runOnHost } from "./virtual-host.ts";

if (LEFT_OUT !== null) console.log(`the virtual host: left out, because ${LEFT_OUT}`);

test.skipIf(LEFT_OUT !== null)(
  "an unprivileged listener receives nothing from a guest, and blocks no sandbox, even while the service is down",
  () => {
    const results = runOnHost("vsock-squatter");
    const privileged = Array.from({ length: 8 }, (_, index) => `'${1016 + index}:Permission denied'`).join(", ");
    const open = Array.from({ length: 8 }, (_, index) => 1024 + index).join(", ");
    expect(results.held_65534).toBe(`holds [${open}, 5000] refused [${privileged}] as 65534`);
    expect(results).toMatchObject({
      ...{ created: "running", first: "ran", after: "running", second: "ran" },
      ...{ standby: "paused", resumed: "running", third: "ran" },
    });
    expect(results.heard).toMatch(/^0 /);
    expect(results.health).toMatch(new RegExp(`^warn .*\\b${open}, 5000\\b`));
    // Root may hold the daemon's port: the guest connects, reveals nothing, does nothing, and moves to the next port.
    expect(results.held_0).toBe("holds [1016] refused [] as 0");
    expect(results.root_heard).toMatch(/"nonce":"","guest_cid":\d+,"set_up":true,.*"challenge":"[0-9a-f]{64}"/);
    expect(results.root_heard).not.toMatch(/uid=0|"ok":true/);
    expect(results).toMatchObject({ beside_root: "running", fourth: "ran" });
  },
);
