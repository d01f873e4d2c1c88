/**
 * Daemon and agent over the kernel's vsock loopback, on a virtual host, while a user and then root hold ports. Takes a few minutes and a
 * package mirror, so it runs if ROOMD_TEST_LONG is 1.
 */
import { expect, test } from "vitest";
import { HOST_PORT } from "../../shared/agent-protocol/messages.ts";
import { LEFT_OUT, runOnHost } from "./virtual-host.ts";

if (LEFT_OUT !== null) console.log(`vsock's loopback: left out, because ${LEFT_OUT}`);

test.skipIf(LEFT_OUT !== null)(
  "a guest reconnects to its host although other processes hold ports, and discloses nothing to them",
  () => {
    const results = runOnHost("vsock-loopback");
    expect(results.probes).toBe("[]");
    const ports = Array.from({ length: 8 }, (_, index) => 1024 + index);
    expect(results.held_65534).toMatch(
      new RegExp(`^holds \\[${ports.join(", ")}, 5000\\] refused .*1016:Permission denied`),
    );
    expect(results).toMatchObject({
      first: `linked at ${HOST_PORT}`,
      foreign: JSON.stringify({ ports: [...ports, 5000] }),
      second: `linked at ${HOST_PORT}`,
      user_heard: "0 ",
      // Only the agent dials from a reserved port.
      unreserved: "closed, and the guest is linked",
    });
    // Root may hold the daemon's port: the agent connects, reveals nothing, does nothing, and moves to the next port.
    expect(results).toMatchObject({
      held_0: `holds [${HOST_PORT}] refused [] as 0`,
      third: `linked at ${HOST_PORT + 1}`,
    });
    expect(results.root_heard).toMatch(/"nonce":"","guest_cid":1,"set_up":true,.*"challenge":"[0-9a-f]{64}"/);
    expect(results.root_heard).not.toMatch(/by which the host knows/);
    expect(results.asked).toBe(JSON.stringify([1, 2, 3].map(() => ({ method: "exec_start" }))));
  },
);
