/** A guest keeps the transport that it was started with, whatever new ones get; what is another daemon's now may be ours later. */
import { closeSync, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { Transports } from "../../../../daemon/host/guest-link/transports/choose.ts";
import { makeKernelTransport } from "../../../../daemon/host/guest-link/transports/kernel.ts";
import { listenVsock } from "../../../../daemon/host/guest-link/transports/vsock-socket.ts";
import { HOST_PORTS } from "../../../../shared/agent-protocol/messages.ts";

const PORT = 0x726f6f80;
const reason = existsSync("/dev/vsock") ? null : "this kernel has no AF_VSOCK";
if (reason !== null) console.log(`the kernel's transport: left out, because ${reason}`);

/** Any device that opens. */
const KERNEL = { wanted: "kernel", program: "vhost-device-vsock", device: "/dev/null" } as const;
const openKernel = () => makeKernelTransport(PORT);

test("what new guests lack keeps none that is there from its own", async () => {
  const transports = new Transports({ wanted: "vhost-user", program: "/nonexistent/vhost-device-vsock", openKernel });
  await transports.choose();
  expect(() => transports.chosen).toThrow(expect.objectContaining({ code: "not_ready" }));
  expect(transports.of("vhost-user").kind).toBe("vhost-user");
});

test.skipIf(reason !== null)("who only looks takes no port, beside whoever has one", async () => {
  const another = makeKernelTransport(PORT);
  const transports = new Transports({ ...KERNEL, openKernel });
  try {
    await transports.choose();
    expect(transports.found.kind).toBe("kernel");
    const next = listenVsock(PORT + 1);
    expect(next).not.toBeNull();
    closeSync(next ?? -1);
    expect(transports.chosen.kind).toBe("kernel");
    expect(listenVsock(PORT + 1)).toBeNull();
  } finally {
    another.stop();
    transports.close();
  }
});

test.skipIf(reason !== null)("ports of the kernel's that others have are not there now, and are later", async () => {
  const others = Array.from({ length: HOST_PORTS }, () => makeKernelTransport(PORT));
  const transports = new Transports({ ...KERNEL, openKernel });
  const taken = expect.objectContaining({ code: "not_ready", message: expect.stringContaining("are taken") });
  try {
    await transports.choose();
    expect(() => transports.chosen).toThrow(taken);
    expect(() => transports.of("kernel")).toThrow(taken);
  } finally {
    for (const other of others) other.stop();
  }
  const own = transports.of("kernel");
  expect([own.kind, transports.chosen === own]).toEqual(["kernel", true]);
  transports.close();
});

test("a device that does not open is none, and why is said", async () => {
  const transports = new Transports({ ...KERNEL, device: "/nowhere/vhost-vsock" });
  await transports.choose();
  expect(transports.found).toEqual({ kind: null, reason: expect.stringContaining("ENOENT") });
  expect(() => transports.chosen).toThrow(expect.objectContaining({ code: "not_ready" }));
});

test.skipIf(reason !== null)("a guest of the kernel's keeps it where new ones get a process", async () => {
  // What says its version is found to be there.
  const transports = new Transports({ wanted: "vhost-user", program: process.execPath, openKernel });
  await transports.choose();
  expect([transports.chosen.kind, transports.of("kernel").kind]).toEqual(["vhost-user", "kernel"]);
  transports.close();
});
