/** Undocumented behaviour that the daemon relies on is probed quickly, and a failed probe is reported. */
import { mkdtempSync, readdirSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { inspectHost } from "../../../daemon/compose/inspect-host.ts";
import { type Config, loadConfig } from "../../../daemon/core/config/config.ts";
import { makePaths } from "../../../daemon/core/config/paths.ts";
import type { Log } from "../../../daemon/core/log.ts";
import { readFacts } from "../../../daemon/host/files/facts.ts";
import { getdents, openat2 } from "../../../daemon/host/files/libc.ts";
import { type Probed, probeRuntime } from "../../../daemon/host/runtime-probes.ts";

const place = mkdtempSync(join(tmpdir(), "roomd-probes-"));
afterAll(() => rmSync(place, { recursive: true, force: true }));

test("all of it works on this host, and no probe file remains", async () => {
  const startedAt = performance.now();
  expect(await probeRuntime(place)).toEqual([]);
  console.log(`probed in ${(performance.now() - startedAt).toFixed(1)} ms`);
  expect(readdirSync(place)).toEqual([]);
});

const never = () => new Promise<never>(() => {});
test.each<[string, Partial<Probed>, RegExp]>([
  [
    "a running process is reported as ended",
    { endOf: async () => {} },
    /^The support of this host for the ends of processes .*has ended is true/,
  ],
  ["a process' end is never reported", { endOf: never }, /the ends of processes .*took over 2000 ms/],
  ["a limit is not set", { limitFileSize: () => {} }, /limits of processes .*unlimited/],
  [
    "a fact is read elsewhere",
    { readFacts: (fd, name) => ({ ...readFacts(fd, name), size_bytes: 0 }) },
    /facts of files .*size is 0 but 5/,
  ],
  [
    "a path leads out",
    { openat2: (fd, path, flags, mode) => openat2(fd, path, flags, mode, 0) },
    /paths beneath a directory .*error of \.\. is none/,
  ],
  [
    "a call is not there",
    {
      openat2: () => {
        throw Object.assign(new Error("ENOSYS: openat2"), { code: "ENOSYS" });
      },
    },
    /paths beneath a directory .*ENOSYS/,
  ],
  ["a directory looks empty", { getdents: () => 0 }, /names in a directory .*list is false/],
  [
    "a directory never ends",
    { getdents: (fd, buffer) => getdents(fd, buffer) || 24 },
    /names in a directory .*rest of a directory is 24/,
  ],
  ["a listener is another one", { adoptedPeer: async () => "other" }, /connections that are adopted .*is other/],
  ["vsock reports another address", { loopbackPeer: async () => 3 }, /vsock connections .*is 3 but 1/],
])("if %s, exactly that is reported", async (_, changed, expected) => {
  const problems = await probeRuntime(place, changed, 2_000);
  expect(problems).toEqual([expect.stringMatching(expected)]);
  expect(readdirSync(place)).toEqual([]);
});

test("a probe whose deadline passes is repeated once", async () => {
  let attempts = 0;
  const loopbackPeer = () => (++attempts === 1 ? never() : Promise.resolve(1));
  expect(await probeRuntime(place, { loopbackPeer }, 200)).toEqual([]);
  expect(attempts).toBe(2);
});

test("a host without a vsock loopback is probed without it", async () => {
  expect(await probeRuntime(place, { loopbackPeer: async () => null })).toEqual([]);
});

test("if a probe fails no guest is started, with the reason", async () => {
  const log = { info: () => {}, warn: () => {} } as unknown as Log;
  const config: Config = {
    ...loadConfig({ file: undefined, env: {} }).config,
    ...{ acceleration: "tcg", data_dir: join(place, "data"), runtime_dir: place },
  };
  const broken = await inspectHost(config, makePaths(config), log, { adoptedPeer: async () => "other" });
  expect(broken.findings.runtime).toEqual([expect.stringContaining("other")]);
  expect(() => broken.guestHost()).toThrow(
    expect.objectContaining({ code: "not_ready", message: expect.stringContaining(broken.findings.runtime.join()) }),
  );
  broken.close();
  const whole = await inspectHost(config, makePaths(config), log);
  expect(whole.findings.runtime).toEqual([]);
  whole.close();
});
