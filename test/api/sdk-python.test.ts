/** The Python SDK against a daemon, over a network that loses answers: its own tests, and what they cannot see. Commands are in test/vm. */
import { spawnSync } from "node:child_process";
import { cpSync, mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generate } from "../../sdk/python/generate.ts";
import { VERSION } from "../../sdk/typescript/src/version.ts";
import { TestDaemon } from "../harness/daemon.ts";
import { Doer, FILES, PYTHON_SDK, runPython } from "../harness/python-tests.ts";
import { UnreliableProxy } from "../harness/unreliable-proxy.ts";

let daemon: TestDaemon;
let secure: TestDaemon;
let proxy: UnreliableProxy;
let doer: Doer;
let env: Record<string, string>;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  secure = await TestDaemon.start({ env: { ROOMD_TLS_MODE: "self-signed" } });
  proxy = new UnreliableProxy(() => daemon.url);
  doer = new Doer({
    ...proxy.deeds,
    restart: () => daemon.restart("SIGKILL"),
  });
  env = {
    ROOMD_TEST_PROXY: await proxy.listen(),
    ROOMD_TEST_DOER: await doer.listen(),
    ROOMD_TEST_TLS_URL: secure.url.replace("127.0.0.1", "localhost"),
    ROOMD_TEST_TLS_CERT: join(secure.dataDir, "tls/cert.pem"),
  };
});
afterAll(async () => {
  proxy.close();
  doer.close();
  await Promise.all([daemon.stop(), secure.stop()]);
});

test("what it has of the document is what the document says", async () => {
  for (const [name, text] of Object.entries(generate())) {
    const file = Bun.file(`${PYTHON_SDK}/src/roomd/_generated/${name}`);
    expect(await file.text(), `run \`bun sdk/python/generate.ts\`: ${name} is old`).toBe(text);
  }
});

test.each(FILES)("%s", { timeout: 180_000 }, async (name) => {
  proxy.fault = () => null;
  const run = await runPython(name, { ...env, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey });
  if (run.status !== 0) throw new Error(run.output);
  expect(run.tests).toBeGreaterThan(0);
  expect(run.complaints).toEqual([]);
});

/** Debian's own Python has what builds packages, others may not. */
const CAN_BUILD = `
import importlib.util, sys
sys.exit(not all(map(importlib.util.find_spec, ("pip", "setuptools", "wheel"))))`;
const builder = ["python3", "/usr/bin/python3"].find((python) => spawnSync(python, ["-c", CAN_BUILD]).status === 0);

test("is one wheel with its types, of the same version as the other SDK", { timeout: 60_000 }, ({ skip }) => {
  if (builder === undefined) {
    console.log("the wheel is not built, because no Python here has pip, setuptools and wheel");
    return skip("no Python has pip, setuptools and wheel");
  }
  const directory = mkdtempSync(join(tmpdir(), "roomd-wheel-"));
  try {
    // What is built leaves its traces beside the sources.
    cpSync(PYTHON_SDK, join(directory, "sdk"), { recursive: true });
    const build = ["-m", "pip", "wheel", "--no-deps", "--no-build-isolation", "--no-index", "--no-cache-dir", "-w"];
    const built = spawnSync(builder, [...build, directory, join(directory, "sdk")], { encoding: "utf8" });
    expect(built.status, built.stderr).toBe(0);
    const wheel = join(directory, `roomd-${VERSION}-py3-none-any.whl`);
    const listing = "import sys, zipfile; print('\\n'.join(zipfile.ZipFile(sys.argv[1]).namelist()))";
    const names = spawnSync("python3", ["-c", listing, wheel], { encoding: "utf8" }).stdout.trim().split("\n");
    expect(names).toContain("roomd/py.typed");
    expect(names.filter((name) => /test|\.ts$|__pycache__/.test(name))).toEqual([]);
    const used = "import roomd; print(roomd.__version__, roomd.Roomd.__name__)";
    const imported = spawnSync("python3", ["-c", used], {
      encoding: "utf8",
      env: { ...process.env, PYTHONPATH: wheel },
    });
    expect(imported.stdout).toBe(`${VERSION} Roomd\n`);
  } finally {
    rmSync(directory, { recursive: true });
  }
});
