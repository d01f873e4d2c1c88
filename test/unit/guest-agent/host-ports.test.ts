/** Which of the host's ports an agent tries next. */
import { expect, test } from "vitest";
import { HostPorts } from "../../../guest-agent/host-ports.ts";
import { HOST_PORT, HOST_PORTS } from "../../../shared/agent-protocol/messages.ts";

test("all are tried in turn, and a new round is reported", () => {
  const ports = new HostPorts();
  const tried: number[] = [ports.port];
  while (!ports.next()) tried.push(ports.port);
  expect(tried).toEqual(Array.from({ length: HOST_PORTS }, (_, index) => HOST_PORT + index));
  expect(ports.port).toBe(HOST_PORT);
});

test("starts from the first again if a port does not respond", () => {
  const ports = new HostPorts();
  ports.next();
  expect(ports.port).toBe(HOST_PORT + 1);
  ports.first();
  expect(ports.port).toBe(HOST_PORT);
});
