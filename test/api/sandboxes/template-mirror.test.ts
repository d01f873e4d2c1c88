/** Package sources of a template, as far as possible without a fetch: the configured mirror, otherwise the host's own sources. */
import { spawnSync } from "node:child_process";
import { chmodSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";

const asRoot = process.getuid?.() === 0;
if (!asRoot) console.log("mirrors of templates: left out, because only root builds templates");

let daemon: TestDaemon;
beforeAll(async () => {
  daemon = await TestDaemon.start({ env: { ROOMD_ACCELERATION: "tcg", ROOMD_POOL_SIZE: "0" } });
});
afterAll(() => daemon.stop());

test.skipIf(!asRoot)("template.mirror is passed to the builder", async () => {
  const env = { ROOMD_TEMPLATE_MIRROR: "neither here nor there" };
  const { status, stderr } = await daemon.cli(["template", "build", "default"], undefined, env);
  expect([status, stderr]).toEqual([1, expect.stringContaining(env.ROOMD_TEMPLATE_MIRROR)]);
});

test.skipIf(!asRoot)("without a Debian mirror in apt's sources the builder suggests the setting", () => {
  const apt = join(daemon.home, "apt-get");
  writeFileSync(apt, "#!/bin/sh\n");
  chmodSync(apt, 0o755);
  const out = join(daemon.home, "image");
  const argv = ["--out", out, "--agent", "/bin/true", "--suite", "x", "--packages", "x", "--disk-mib", "1"];
  const { status, stderr } = spawnSync(join("packaging", "guest-image", "build"), argv, {
    encoding: "utf8",
    env: { PATH: `${daemon.home}:${process.env.PATH}` },
  });
  expect([status, stderr.trim().split("\n")]).toEqual([1, [expect.stringContaining("template.mirror")]]);
});
