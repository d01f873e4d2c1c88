/** The SDK as it is published: packed, installed into an empty directory, and used by Node with the example of its own page. */
import { execFileSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../harness/daemon.ts";

const SDK = join(import.meta.dirname, "../../sdk/typescript");
/** Of the packed file. */
const MOST_BYTES = 100_000;

let daemon: TestDaemon;
let directory: string;
let tarball: string;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  directory = mkdtempSync(join(tmpdir(), "roomd-sdk-"));
  run("npm", ["pack", "--silent", "--pack-destination", directory], SDK);
  tarball = readdirSync(directory).find((name) => name.endsWith(".tgz")) ?? "";
});
afterAll(async () => {
  await daemon.stop();
  rmSync(directory, { recursive: true, force: true });
});

function run(program: string, args: string[], cwd: string): string {
  const env = { ...process.env, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey };
  return execFileSync(program, args, { cwd, env, encoding: "utf8" });
}

test("it is small, and has what it needs and nothing else", { timeout: 60_000 }, () => {
  console.log(`roomd-sdk: ${statSync(join(directory, tarball)).size} bytes packed`);
  expect(statSync(join(directory, tarball)).size).toBeLessThan(MOST_BYTES);
  const files = run("tar", ["-tzf", tarball], directory).trim().split("\n");
  const kinds = new Set(files.map((file) => file.replace(/^package\/dist\/.*\.(d\.ts|js)$/, "dist/*.$1")));
  expect([...kinds].sort()).toEqual(
    ["dist/*.d.ts", "dist/*.js", "package/README.md", "package/dist/LICENSE", "package/package.json"].sort(),
  );
  const { dependencies } = JSON.parse(readFileSync(join(SDK, "package.json"), "utf8"));
  expect(dependencies).toBeUndefined();
});

test("Node runs the example of its page, from an empty directory", { timeout: 60_000 }, () => {
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module", private: true }));
  run("npm", ["install", "--offline", "--no-audit", "--no-fund", "--silent", `./${tarball}`], directory);
  const [, example = ""] = /```ts\n(import[^`]+)```/.exec(readFileSync(join(SDK, "README.md"), "utf8")) ?? [];
  writeFileSync(join(directory, "example.js"), example);
  expect(run("node", ["example.js"], directory)).toBe("planner hello\n\n");
});
