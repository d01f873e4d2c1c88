/** Identity of the host's processor, as far as a guest's saved state depends on it. */
import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";

/** The processor's model and a digest of its features: two hosts with equal values can load each other's guests under KVM. */
export function processorOf(cpuinfo = readFileSync("/proc/cpuinfo", "utf8")): string {
  const field = (name: string) => new RegExp(`^${name}\\s*:\\s*(.*)$`, "m").exec(cpuinfo)?.[1]?.trim() ?? "unknown";
  // Arm's kernels name the field `Features` and have no model.
  const features = `${field("flags")} ${field("Features")}`.split(" ").sort().join(" ");
  return `${field("model name")}, features ${createHash("sha256").update(features).digest("hex").slice(0, 12)}`;
}
