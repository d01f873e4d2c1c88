/** Capabilities of a process, read as the kernel reports them. */
import { readFileSync } from "node:fs";
import { expect, test } from "vitest";
import { CAP_NET_BIND_SERVICE, hasCapability } from "../../../daemon/host/capabilities.ts";

const statusText = (effective: string) =>
  `Name:\troomd\nCapInh:\t0000000000000400\nCapEff:\t${effective}\nCapBnd:\t000001ffffffffff\n`;

test("a capability is one bit of the effective set, and no other set counts", () => {
  expect(hasCapability(CAP_NET_BIND_SERVICE, statusText("0000000000000400"))).toBe(true);
  expect(hasCapability(CAP_NET_BIND_SERVICE, statusText("000001fffffffbff"))).toBe(false);
  expect(hasCapability(40, statusText("000001ffffffffff"))).toBe(true);
  expect(hasCapability(CAP_NET_BIND_SERVICE, "Name:\troomd\n")).toBe(false);
});

test("defaults to the status of this process", () => {
  expect(hasCapability(CAP_NET_BIND_SERVICE)).toBe(
    hasCapability(CAP_NET_BIND_SERVICE, readFileSync("/proc/self/status", "utf8")),
  );
});
