/**
 * The Python SDK's own tests in a sandbox with Debian 13's Python (3.13), against another daemon next to it; on the host they run with the
 * host's. It takes minutes.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Doer, FILES, PYTHON_SDK, toldBy, unittestOf } from "../../harness/clients/python-tests.ts";
import { TestDaemon } from "../../harness/daemon.ts";
import { LONG, withGuests } from "../../harness/guests.ts";
import { UnreliableProxy } from "../../harness/hosts/unreliable-proxy.ts";
import { Outside } from "../../harness/images/outside.ts";

const python = (name: string) => ["python3", ...unittestOf(name)];
const FILE_MS = 600_000;
const MEMORY_MIB = 512;

if (!LONG) console.log("the Python SDK in a sandbox: left out, because it takes minutes: ROOMD_TEST_LONG=1 runs it");

let outside: Outside;
/** At an address that sandboxes can have in their lists, as the operator lets them. */
const prepare = async (daemon: TestDaemon) => {
  outside = await Outside.start([]);
  daemon.env.ROOMD_EGRESS_PRIVATE_RANGES = `${outside.hostV4}/32`;
};

describe.skipIf(!LONG)("long tests", () => {
  withGuests("the Python SDK in a sandbox", { prepare }, (guests) => {
    let daemon: TestDaemon;
    let secure: TestDaemon;
    let proxy: UnreliableProxy;
    let doer: Doer;
    let env: Record<string, string>;
    beforeAll(async () => {
      const listen = { ROOMD_HTTP_LISTEN: `${outside.hostV4}:0` };
      daemon = await TestDaemon.start({ env: { ...listen, ROOMD_HTTP_INSECURE: "true" } });
      secure = await TestDaemon.start({ env: { ...listen, ROOMD_TLS_MODE: "self-signed" } });
      proxy = new UnreliableProxy(() => daemon.url);
      doer = new Doer({ ...proxy.deeds, restart: () => daemon.restart("SIGKILL") });
      env = {
        PYTHONPATH: "src",
        ROOMD_URL: daemon.url,
        ROOMD_API_KEY: daemon.apiKey,
        ROOMD_TEST_PROXY: await proxy.listen(outside.hostV4),
        ROOMD_TEST_DOER: await doer.listen(outside.hostV4),
        ROOMD_TEST_TLS_URL: secure.url,
        ROOMD_TEST_TLS_CERT: "/root/cert.pem",
      };
      const host = guests.daemon;
      await host.room("r");
      const egress_allowlist = [`${outside.hostV4}/32`];
      await host.sandbox("r", "a", guests.cid(), { memory_mib: MEMORY_MIB, egress_allowlist });
      const put = (name: string, body: Buffer) =>
        fetch(`${host.url}/v1/rooms/r/drive/files/${name}`, {
          method: "PUT",
          headers: { authorization: `Bearer ${host.apiKey}` },
          body,
        });
      await put("sdk.tar", spawnSync("tar", ["-c", "-C", PYTHON_SDK, "src", "tests", "README.md"]).stdout);
      await put("cert.pem", readFileSync(join(secure.dataDir, "tls/cert.pem")));
      await host.sh(
        "r",
        "a",
        "mkdir /root/sdk && tar -xf /mnt/drive/sdk.tar -C /root/sdk && cp /mnt/drive/cert.pem /root",
      );
    }, FILE_MS);
    afterAll(async () => {
      proxy.close();
      doer.close();
      await Promise.all([daemon.stop(), secure.stop()]);
      await outside[Symbol.asyncDispose]();
    });

    test("runs on Python 3.13 or later", async () => {
      expect(await guests.daemon.sh("r", "a", "python3 --version")).toMatch(/^Python 3\.(1[3-9]|[2-9]\d)\./);
    });

    test.each(FILES)("%s", { timeout: FILE_MS }, async (name) => {
      proxy.fault = () => null;
      const run = await guests.daemon.exec("r", "a", {
        // A command's environment may not contain the service's own variables.
        argv: [
          "env",
          ...Object.entries({ ...env, ROOMD_URL: daemon.url }).map((pair) => pair.join("=")),
          ...python(name),
        ],
        cwd: "/root/sdk",
        timeout_ms: FILE_MS,
      });
      const output = `${run.stdout}${run.stderr}`;
      const { tests, complaints } = toldBy(output);
      console.log(`${name}: ${tests} tests in ${Math.round(run.duration_ms / 1000)} s`);
      if (run.exit_code !== 0) throw new Error(output.slice(-8000));
      expect(tests).toBeGreaterThan(0);
      expect(complaints).toEqual([]);
    });
  });
});
