/** The host name that a sandbox has by its agent's name. */
import { expect, test } from "vitest";
import { hostnameOf } from "../../../../daemon/domain/sandboxes/identity.ts";

test.each([
  ["worker", "worker"],
  ["Worker_1.b", "worker-1-b"],
  ["w--", "w"],
  ["a".repeat(128), "a".repeat(63)],
])("%s is %s", (agent, hostname) => {
  expect(hostnameOf(agent)).toBe(hostname);
});

test.each([
  ["7", "agent-7"],
  ["007", "agent-007"],
  ["2130706433", "agent-2130706433"],
  ["0x7F000001", "agent-0x7f000001"],
  ["0x", "agent-0x"],
  ["1.2.3.4", "1-2-3-4"],
  ["7a", "7a"],
  ["9".repeat(128), `agent-${"9".repeat(57)}`],
])("%s is %s, which no resolver mistakes for an address", (agent, hostname) => {
  expect(hostnameOf(agent)).toBe(hostname);
});
