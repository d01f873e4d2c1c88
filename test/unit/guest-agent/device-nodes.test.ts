/** The static nodes that a kernel's modules.devname lists. */
import { expect, test } from "vitest";
import { staticNodes } from "../../../guest-agent/device-nodes.ts";

test("are parsed from its lines, with kind and numbers", () => {
  const text = [
    "# Device nodes to trigger on-demand module loading.",
    "fuse fuse c10:229",
    "tun net/tun c10:200",
    "loop loop-control c10:237",
    "floppy fd0 b2:0",
    "",
  ].join("\n");
  expect(staticNodes(text)).toEqual([
    { path: "fuse", kind: "character", major: 10, minor: 229 },
    { path: "net/tun", kind: "character", major: 10, minor: 200 },
    { path: "loop-control", kind: "character", major: 10, minor: 237 },
    { path: "fd0", kind: "block", major: 2, minor: 0 },
  ]);
});

test("are below /dev", () => {
  for (const path of ["../etc/x", "/etc/x", "net/../../etc/x", "net//tun", "..", "."]) {
    expect(staticNodes(`module ${path} c10:200`)).toEqual([]);
  }
});

test("require a kind and both numbers", () => {
  for (const line of [
    "tun net/tun",
    "tun net/tun p10:200",
    "tun net/tun c10",
    "tun net/tun c10:200 more",
    "net/tun c10:200",
  ]) {
    expect(staticNodes(line)).toEqual([]);
  }
});
