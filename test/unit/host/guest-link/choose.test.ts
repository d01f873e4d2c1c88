/** A guest keeps the transport that it was started with, whatever new ones get; what is another daemon's now may be ours later. */
import { closeSync, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { Transports } from "../../../../daemon/host/guest-link/transports/choose.ts";
import { makeKernelTransport } from "../../../../daemon/host/guest-link/transports/kernel.ts";
import { listenVsock } from "../../../../daemon/host/guest-link/transports/vsock-socket.ts";

const PORT = 0x726f6f6e;
const reason = existsSync("/dev/vsock") ? null : "this kernel has no AF_VSOCK";
if (reason !== null) console.log(`the kernel's transport: left out, because ${reason}`);

const openKernel = () => makeKernelTransport(PORT);

test("what new guests lack keeps none that is there from its own", async () => {
  const transports = new Transports({ wanted: "vhost-user", program: "/nonexistent/vhost-device-vsock", openKernel });
  await transports.choose();
  expect(() => transports.chosen).toThrow(expect.objectContaining({ code: "not_ready" }));
  expect(transports.of("vhost-user").kind).toBe("vhost-user");
});

test.skipIf(reason !== null)("a port of the kernel's that another has is not there now, and is later", async () => {
  const another = listenVsock(PORT);
  const transports = new Transports({ wanted: "kernel", program: "vhost-device-vsock", openKernel });
  try {
    await transports.choose();
    expect(transports.found).toEqual({ kind: null, reason: expect.stringContaining("is taken") });
    expect(() => transports.of("kernel")).toThrow(
      expect.objectContaining({ code: "not_ready", message: expect.stringContaining("is taken") }),
    );
  } finally {
    closeSync(another);
  }
  const own = transports.of("kernel");
  await transports.choose();
  expect([own.kind, transports.chosen === own, transports.found.kind]).toEqual(["kernel", true, "kernel"]);
  transports.close();
});

test.skipIf(reason !== null)("a guest of the kernel's keeps it where new ones get a process", async () => {
  // What says its version is found to be there.
  const transports = new Transports({ wanted: "vhost-user", program: process.execPath, openKernel });
  await transports.choose();
  expect([transports.chosen.kind, transports.of("kernel").kind]).toEqual(["vhost-user", "kernel"]);
  transports.close();
});
