/**
 * A guest keeps the transport that it was started with, whatever new ones get; a port that another daemon holds may become available later.
 */
import { closeSync, existsSync } from "node:fs";
import { expect, test } from "vitest";
import { firstPortOf, Transports } from "../../../../daemon/host/guest-link/transports/choose.ts";
import { makeKernelTransport } from "../../../../daemon/host/guest-link/transports/kernel.ts";
import { listenVsock } from "../../../../daemon/host/guest-link/transports/vsock-socket.ts";
import { HOST_PORT, HOST_PORTS, OPEN_HOST_PORT, PROOF_GENERATION } from "../../../../shared/agent-protocol/messages.ts";

const PORT = 0x726f6f80;
const reason = existsSync("/dev/vsock") ? null : "this kernel has no AF_VSOCK";
if (reason !== null) console.log(`the kernel's transport: left out, because ${reason}`);

/** Any device that opens. */
const KERNEL = { wanted: "kernel", program: "vhost-device-vsock", device: "/dev/null" } as const;
/** High ports in place of the ports that only root may use. */
const openKernel = (firstPort: number) => makeKernelTransport(PORT + (firstPort - HOST_PORT));

test("a transport missing for new guests does not affect existing guests", async () => {
  const transports = new Transports({ wanted: "vhost-user", program: "/nonexistent/vhost-device-vsock", openKernel });
  await transports.choose();
  expect(() => transports.chosen).toThrow(expect.objectContaining({ code: "not_ready" }));
  expect(transports.of("vhost-user", HOST_PORT).kind).toBe("vhost-user");
});

test.skipIf(reason !== null)("a read-only inspection takes no port, and works alongside the owner", async () => {
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

test.skipIf(reason !== null)("kernel ports in use elsewhere are unavailable now, and available later", async () => {
  const others = Array.from({ length: HOST_PORTS }, () => makeKernelTransport(PORT));
  const transports = new Transports({ ...KERNEL, openKernel });
  const taken = expect.objectContaining({ code: "not_ready", message: expect.stringContaining("are taken") });
  try {
    await transports.choose();
    expect(() => transports.chosen).toThrow(taken);
    expect(() => transports.of("kernel", HOST_PORT)).toThrow(taken);
  } finally {
    for (const other of others) other.stop();
  }
  const own = transports.of("kernel", HOST_PORT);
  expect([own.kind, transports.chosen === own]).toEqual(["kernel", true]);
  transports.close();
});

test("a device that cannot be opened is unavailable, with a reason", async () => {
  const transports = new Transports({ ...KERNEL, device: "/nowhere/vhost-vsock" });
  await transports.choose();
  expect(transports.found).toEqual({ kind: null, reason: expect.stringContaining("ENOENT") });
  expect(() => transports.chosen).toThrow(expect.objectContaining({ code: "not_ready" }));
});

test.skipIf(reason !== null)("a guest on the kernel's transport keeps it when new ones get a process", async () => {
  // A program that prints its version counts as present.
  const transports = new Transports({ wanted: "vhost-user", program: process.execPath, openKernel });
  await transports.choose();
  expect([transports.chosen.kind, transports.of("kernel", HOST_PORT).kind]).toEqual(["vhost-user", "kernel"]);
  transports.close();
});

test.skipIf(reason !== null)(
  "an older agent's ports are taken for it alone, and another owner of them blocks no other guest",
  async () => {
    const squatters = Array.from({ length: HOST_PORTS }, () => openKernel(OPEN_HOST_PORT));
    const transports = new Transports({ ...KERNEL, openKernel });
    try {
      await transports.choose();
      expect(transports.chosen.kind).toBe("kernel");
      expect(() => transports.of("kernel", OPEN_HOST_PORT)).toThrow(expect.objectContaining({ code: "not_ready" }));
      for (const squatter of squatters.splice(0)) squatter.stop();
      const old = transports.of("kernel", OPEN_HOST_PORT);
      expect([transports.of("kernel", OPEN_HOST_PORT) === old, transports.chosen === old]).toEqual([true, false]);
    } finally {
      for (const squatter of squatters) squatter.stop();
      transports.close();
    }
  },
);

test("a daemon without permission for root's ports does not use the kernel's vsock, with a reason", async () => {
  const mayListen = () => false;
  const reason = expect.stringContaining("CAP_NET_BIND_SERVICE is missing");
  const kernel = new Transports({ ...KERNEL, openKernel, mayListen });
  await kernel.choose();
  expect(kernel.found).toEqual({ kind: null, reason });
  const auto = new Transports({ ...KERNEL, wanted: "auto", program: process.execPath, openKernel, mayListen });
  await auto.choose();
  expect(auto.found).toEqual({ kind: "vhost-user", reason });
});

test("agents that authenticate their host dial root's ports", () => {
  expect([PROOF_GENERATION - 1, PROOF_GENERATION, PROOF_GENERATION + 1].map(firstPortOf)).toEqual([
    OPEN_HOST_PORT,
    HOST_PORT,
    HOST_PORT,
  ]);
});
