/** Vsock devices that are taken for lost: one over which the agent is just being met is not. */
import { expect, test, vi } from "vitest";
import type { Log } from "../../../../daemon/core/log.ts";
import { hasLostVsock } from "../../../../daemon/host/guest/replace-vsock.ts";
import type { GuestParts } from "../../../../daemon/host/guest/steps.ts";
import { GuestConnection } from "../../../../daemon/host/guest-link/connection.ts";
import { linkSocket } from "../../../../daemon/host/guest-link/link-socket.ts";
import { processOf } from "../../../../daemon/host/process.ts";
import { quirksOf } from "../../../../shared/agent-protocol/device-quirks.ts";
import { encodeFrame, FrameType } from "../../../../shared/agent-protocol/frame.ts";
import { guestProof } from "../../../../shared/agent-protocol/host-proof.ts";
import { GENERATION, HOST_PORT, OLDEST_GENERATION } from "../../../../shared/agent-protocol/messages.ts";

const identity = { hostname: "h", machine_id: "0".repeat(32), env: {}, drive: null };

test("a device is lost though other processes dial over it, until one proves that it is the agent", async () => {
  const secret = "5".repeat(64);
  const challenge = "c".repeat(64);
  const known = { generation: GENERATION, secret, nonce: "known" };
  const connection = new GuestConnection(9100, identity, known, { warn: () => {} } as unknown as Log);
  const endpoint = { process: processOf(process.pid), has: quirksOf(null) };
  const parts = { endpoint, connection } as unknown as GuestParts;
  const dial = () => {
    const socket = { write: (bytes: Uint8Array) => bytes.byteLength, pause: () => {}, resume: () => {}, end: () => {} };
    const ports = { to: HOST_PORT, from: null };
    const dialled = linkSocket(socket as unknown as Parameters<typeof linkSocket>[0], ports, endpoint.has);
    connection.accept(dialled.link);
    return dialled;
  };
  for (let count = 0; count < 8; count++) dial();
  expect(hasLostVsock(parts)).toBe(true);
  const proofs = [guestProof(secret, 9100, HOST_PORT, challenge)];
  const hello = { generation: GENERATION, version: "1", nonce: "", guest_cid: 9100, set_up: true, challenge, proofs };
  dial().receive(encodeFrame(FrameType.hello, 0, new TextEncoder().encode(JSON.stringify(hello))));
  await vi.waitFor(() => expect(hasLostVsock(parts)).toBe(false));
  connection.close("over");
});

test("a device with a lost connection is lost, unless the agent has dialled and is still to be set up", () => {
  const known = { generation: OLDEST_GENERATION, secret: null, nonce: "known" };
  const connection = new GuestConnection(9100, identity, known, { warn: () => {} } as unknown as Log);
  const endpoint = { process: processOf(process.pid), has: quirksOf(null) };
  const parts = { endpoint, connection } as unknown as GuestParts;
  expect(hasLostVsock(parts)).toBe(true);
  expect(hasLostVsock({ ...parts, undialled: parts.endpoint })).toBe(false);

  const socket = { write: () => 0, pause: () => {}, resume: () => {}, end: () => {} };
  const dialled = linkSocket(
    socket as unknown as Parameters<typeof linkSocket>[0],
    { to: HOST_PORT, from: null },
    endpoint.has,
  );
  connection.accept(dialled.link);
  expect(hasLostVsock(parts)).toBe(false);
  dialled.end("the guest closed it");
  expect(hasLostVsock(parts)).toBe(true);
  connection.close("over");
});
