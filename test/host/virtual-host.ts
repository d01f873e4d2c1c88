/** Runner of a scenario on the virtual host, which `build` makes once and `run` boots. */
import { execFileSync } from "node:child_process";
import { join } from "node:path";

const TESTS = process.env.ROOMD_TEST_DIR ?? "/var/tmp/roomd-test";
const HOST = join(TESTS, "host");

/** Why these tests are skipped; null if they run. */
export const LEFT_OUT = process.env.ROOMD_TEST_LONG === "1" ? null : "it takes minutes: ROOMD_TEST_LONG=1 runs it";

/** The output of the scenario, by the first word of each of its results. Throws if it fails. */
export function runOnHost(scenario: string): Record<string, string> {
  execFileSync(join(import.meta.dirname, "build"), [HOST], { stdio: "inherit" });
  const argv = [HOST, join(import.meta.dirname, scenario), "dist", join(TESTS, "data")];
  const output = execFileSync(join(import.meta.dirname, "run"), argv, { encoding: "utf8" });
  return Object.fromEntries(output.split("\n").map((line) => [line.split(" ")[0], line.split(" ").slice(1).join(" ")]));
}
