/**
 * Owns how the tests run: one project per ring of test/, and how files that the binary embeds as text are loaded.
 * Run by bun (`bun run test`); its virtual-machine pools know no `bun:` modules, so files run in child processes.
 */
import { existsSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { defineConfig, type TestProjectConfiguration } from "vitest/config";
import { LongestFirst } from "./test/check/longest-first.ts";

/**
 * A file that is neither source code nor JSON is one string, as an import `with { type: "text" }` is in the binary; an archive is its path, as
 * one `with { type: "file" }` is.
 */
const textFiles = {
  name: "text-files",
  enforce: "pre" as const,
  async load(id: string) {
    const isCode = /\.[cm]?[jt]sx?$|\.json$|\?|\0|\/node_modules\//.test(id) && !id.endsWith(".browser.js");
    if (id.startsWith("/") && id.endsWith(".tgz")) return `export default ${JSON.stringify(id)}`;
    const isText = id.startsWith("/") && !isCode;
    return isText ? `export default ${JSON.stringify(await readFile(id, "utf8"))}` : null;
  },
};

/** How many files with guests run in parallel: one if a guest's CID is one of the host's, which all daemons share. */
function guestFiles(): number {
  return existsSync("/dev/vhost-vsock") ? 1 : Number(process.env.ROOMD_TEST_GUEST_FILES ?? 2);
}

/** Files of the unit ring that mock modules for their whole process, or measure its memory or turns. */
const OWN_PROCESS = [
  "test/unit/cli/reach.test.ts",
  "test/unit/compose/aside.test.ts",
  "test/unit/core/call/content.test.ts",
  "test/unit/core/config/durable-file.test.ts",
  "test/unit/db/transact.test.ts",
  "test/unit/domain/barriers/space.test.ts",
  "test/unit/domain/sandboxes/executions/run/stdin.test.ts",
  "test/unit/domain/rooms/durable.test.ts",
  "test/unit/domain/terminals/session.test.ts",
  "test/unit/edge/hosts/forward.test.ts",
  "test/unit/edge/mcp-warm-up.test.ts",
  "test/unit/host/guest/bring-forward.test.ts",
  "test/unit/host/guest/pool.test.ts",
  "test/unit/hostile/console.test.ts",
  "test/unit/hostile/fabric.test.ts",
  "test/unit/hostile/guest-frames.test.ts",
  "test/unit/hostile/open-files.test.ts",
  "test/unit/hostile/room-state.test.ts",
  "test/unit/web/messages-kept.test.ts",
];

/** Rings of one `turn` share workers, the longest file first; those of a later turn start when it has ended. */
function ring(name: string, turn: number, test: object = {}): TestProjectConfiguration {
  const include = [`test/${name}/**/*.test.ts`];
  return { plugins: [textFiles], test: { name, include, pool: "forks", sequence: { groupOrder: turn }, ...test } };
}

/** Deadlines of tests that hang: beside guests on a slow host a test takes ten times as long as by itself. */
const COMPUTING = { testTimeout: 120_000, hookTimeout: 180_000 };
/** Files share a process and its modules: to start one and load them takes 2 s of a core, and most of these files take less. */
const ONE_PROCESS = { ...COMPUTING, isolate: false };
const GUESTS = { maxWorkers: guestFiles() };

export default defineConfig({
  test: {
    maxWorkers: 2,
    sequence: { sequencer: LongestFirst },
    projects: [
      // The computing rings; `packaging/check` runs the virtual host and guests beside them.
      ring("house", 0, ONE_PROCESS),
      ring("unit", 0, { ...ONE_PROCESS, exclude: OWN_PROCESS }),
      ring("unit-alone", 0, { ...COMPUTING, include: OWN_PROCESS }),
      ring("protocol", 0, ONE_PROCESS),
      ring("api", 0, {
        ...COMPUTING,
        globalSetup: "test/harness/hosts/shared-postgres.ts",
        setupFiles: "test/harness/event-loop/hold-turns.ts",
      }),
      ring("web", 0, COMPUTING),
      // Without KVM each guest needs a core of its own while it boots.
      ring("vm", 1, { ...GUESTS, testTimeout: 120_000, hookTimeout: 300_000 }),
      // A virtual host with KVM, systemd and the kernel's vsock; with ROOMD_TEST_LONG=1 each file takes minutes and 8 GiB.
      ring("host", 2, { maxWorkers: 1, testTimeout: 1_800_000, hookTimeout: 900_000 }),
    ],
  },
});
