/** The Python SDK with real guests: commands, over a network that fails and a daemon that is killed. All else of it is in test/api. */
import { afterAll, beforeAll, expect, test } from "vitest";
import { Doer, runPython } from "../../harness/clients/python-tests.ts";
import { withGuests } from "../../harness/guests.ts";
import { UnreliableProxy } from "../../harness/hosts/unreliable-proxy.ts";

withGuests("the Python SDK", {}, (guests) => {
  const proxy = new UnreliableProxy(() => guests.daemon.url);
  const doer = new Doer({
    ...proxy.deeds,
    restart: () => guests.daemon.restart("SIGKILL"),
    url: () => guests.daemon.url,
  });
  let env: Record<string, string>;
  beforeAll(async () => {
    const url = await proxy.listen();
    // The daemon comes back on another port: only the proxy finds it.
    env = { ROOMD_URL: url, ROOMD_TEST_PROXY: url, ROOMD_TEST_DOER: await doer.listen() };
  });
  afterAll(() => {
    proxy.close();
    doer.close();
  });

  test.each([
    ["commands", "test_commands", 10],
    ["programs written for E2B", "test_e2b_commands", 5],
  ])("runs %s", { timeout: 600_000 }, async (_, file, least) => {
    const run = await runPython(file, { ...env, ROOMD_API_KEY: guests.daemon.apiKey });
    if (run.status !== 0) throw new Error(run.output);
    expect(run.tests).toBeGreaterThan(least);
    // Programs for E2B close nothing: a connection may be left for the end of the process, which closes it.
    const isLeft = (line: string) =>
      file === "test_e2b_commands" && line.startsWith("sys:1: ResourceWarning: unclosed");
    expect(run.complaints.filter((line) => !isLeft(line))).toEqual([]);
    expect(guests.daemon.leftovers()).toEqual([]);
  });
});
