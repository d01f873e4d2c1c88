/**
 * The Python SDK against a daemon, over a network that loses responses: its own tests, and checks outside of their reach. Commands are in
 * test/vm.
 */
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generate } from "../../../sdk/python/generate.ts";
import { Doer, FILES, PYTHON_SDK, runPython } from "../../harness/clients/python-tests.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { UnreliableProxy } from "../../harness/hosts/unreliable-proxy.ts";

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

test("the generated files match the OpenAPI document", async () => {
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
