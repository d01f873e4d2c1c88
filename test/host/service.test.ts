/**
 * The service as it is installed, where its devices' modules are loaded late, and which processes are in which of its units: on a
 * virtual host with systemd, KVM and the kernel's vhost-vsock. Takes minutes and a package mirror, so it runs where ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { LEFT_OUT, runOnHost } from "./virtual-host.ts";

if (LEFT_OUT !== null) console.log(`the virtual host: left out, because ${LEFT_OUT}`);

test.skipIf(LEFT_OUT !== null)(
  "runs a sandbox before which no module was loaded, and its processes are its scope's",
  () => {
    const results = runOnHost("service");
    expect(results.devices).toBe("none");
    expect(results).toMatchObject({ created: "running", first: "ran", drive: "ran", second: "ran", after: "running" });
    // The daemon alone: nothing of a sandbox counts as the service's, and nothing is left over when that starts again.
    expect([results.service, results.left]).toEqual(["roomd", "roomd"]);
    const scope = "qemu-system-x86 virtiofsd virtiofsd";
    expect([results.sandbox, results.renewed]).toEqual([scope, scope]);
    expect(results.end).toBe("nobody");
  },
);
