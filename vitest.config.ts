/**
 * Owns how the tests run: one project per ring of test/, and how files that the binary embeds as text are loaded.
 * Run by bun (`bun run test`); its virtual-machine pools know no `bun:` modules, so every file gets a process.
 */
import { readFile } from "node:fs/promises";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";

/** What is neither code of ours nor JSON is one string, as an import `with { type: "text" }` is in the binary. */
const textFiles = {
  name: "text-files",
  enforce: "pre" as const,
  async load(id: string) {
    const isCode = /\.[cm]?[jt]sx?$|\.json$|\?|\0|\/node_modules\//.test(id) && !id.endsWith(".browser.js");
    const isText = id.startsWith("/") && !isCode;
    return isText ? `export default ${JSON.stringify(await readFile(id, "utf8"))}` : null;
  },
};

/** Rings run one after another, those with a later `turn` later; timings are not disturbed by another ring's load. */
function ring(name: string, turn: number, test: object = {}): TestProjectConfiguration {
  const include = [`test/${name}/**/*.test.ts`];
  return { plugins: [textFiles], test: { name, include, pool: "forks", sequence: { groupOrder: turn }, ...test } };
}

export default defineConfig({
  test: {
    maxWorkers: 2,
    projects: [
      ring("house", 0),
      // Files of the drive are many, and the disk may be slow.
      ring("unit", 0, { testTimeout: 30_000 }),
      ring("protocol", 0),
      ring("api", 1, { testTimeout: 20_000, hookTimeout: 30_000, globalSetup: "test/harness/shared-postgres.ts" }),
      ring("web", 1, { testTimeout: 20_000, hookTimeout: 60_000 }),
      // Guests share the host's cores, and without KVM each needs one: one file at a time.
      ring("vm", 2, { fileParallelism: false, testTimeout: 120_000, hookTimeout: 300_000 }),
      // A host of its own, with KVM, systemd and the kernel's vsock: minutes each, so only where ROOMD_TEST_LONG is 1.
      ring("host", 3, { fileParallelism: false, testTimeout: 1_800_000, hookTimeout: 900_000 }),
    ],
  },
});
