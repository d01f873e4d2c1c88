/**
 * Device nodes that udev provides on other systems: static nodes of modules that are loaded on first open, and the modes of nodes that
 * every user may open.
 */
import { chmodSync, existsSync, mkdirSync, readFileSync } from "node:fs";
import { release } from "node:os";
import { dirname, join, normalize } from "node:path";
import * as libc from "./libc.ts";
import { log } from "./log.ts";
import { MODULES } from "./runtime.ts";

const DEVICES = "/dev";
/** By udev's own rules (50-udev-default.rules). */
const FOR_EVERYONE = ["fuse", "net/tun"] as const;
const EVERYONE = 0o666;

export interface StaticNode {
  /** Below /dev. */
  path: string;
  kind: "block" | "character";
  major: number;
  minor: number;
}

/** Parses the lines of a kernel's modules.devname: module, path, and `c` or `b` with the device numbers. */
export function staticNodes(text: string): StaticNode[] {
  return text.split("\n").flatMap((line) => {
    const [, path, kind, major, minor] = /^\S+ (\S+) ([cb])(\d+):(\d+)$/.exec(line) ?? [];
    if (path === undefined || path.startsWith("/") || normalize(path) !== path || path.startsWith(".")) return [];
    return [{ path, kind: kind === "b" ? "block" : "character", major: Number(major), minor: Number(minor) }];
  });
}

/** Creates the missing nodes. The failure of one node does not affect the others. */
export function makeDeviceNodes(): void {
  attempt(() => {
    const list = readFileSync(join(MODULES, "lib/modules", release(), "modules.devname"), "utf8");
    for (const node of staticNodes(list)) attempt(() => make(node));
  });
  for (const path of FOR_EVERYONE) {
    attempt(() => existsSync(join(DEVICES, path)) && chmodSync(join(DEVICES, path), EVERYONE));
  }
}

function make({ path, kind, major, minor }: StaticNode): void {
  const place = join(DEVICES, path);
  if (existsSync(place)) return;
  mkdirSync(dirname(place), { recursive: true });
  libc.makeDeviceNode(place, kind, major, minor);
}

function attempt(step: () => unknown): void {
  try {
    step();
  } catch (error) {
    log("device nodes", error);
  }
}
