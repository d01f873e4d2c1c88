/** Answers of the guest's resolver to programs in the guest, queried as they query it. */
import { spawnSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { expect, test } from "vitest";

const isRoot = process.getuid?.() === 0;
if (!isRoot) console.log("skipped: the guest's resolver needs a network namespace, and that needs root");

test.skipIf(!isRoot)("records are returned by UDP, and by TCP if they are long", () => {
  const runner = fileURLToPath(new URL("resolver-runner.ts", import.meta.url));
  const script = 'ip link set lo up && ip address add 192.0.0.2/32 dev lo && exec "$@"';
  const argv = ["--net", "sh", "-c", script, "sh", process.execPath, runner];
  const { stdout, stderr } = spawnSync("unshare", argv, { encoding: "utf8" });
  expect(JSON.parse(stdout || "null"), stderr).toEqual({
    srv: [{ name: "b.example", port: 27_017, priority: 1, weight: 2 }],
    mx: [{ exchange: "b.example", priority: 10 }],
    txt: Array.from({ length: 9 }, () => 200),
    none: expect.stringMatching(/ENOTFOUND/),
    fails: expect.stringMatching(/ESERVFAIL/),
    // A host that is older: there is the name, and nothing of the type.
    older: expect.stringMatching(/ENODATA|ENOTFOUND/),
    a: ["198.18.0.1"],
    asked: expect.any(Number),
  });
});
