/**
 * The service as it is installed, when its devices' modules are loaded late: on a virtual host with systemd, KVM and the kernel's
 * vhost-vsock. Takes minutes and a package mirror, so it runs if ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { LEFT_OUT, runOnHost } from "./virtual-host.ts";

if (LEFT_OUT !== null) console.log(`the virtual host: left out, because ${LEFT_OUT}`);

test.skipIf(LEFT_OUT !== null)("a sandbox runs on a host that has loaded no kernel module before", () => {
  const results = runOnHost("service");
  expect(results.devices).toBe("none");
  expect(results).toMatchObject({ created: "running", first: "ran", second: "ran", after: "running" });
});
