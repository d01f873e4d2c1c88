/** The client packages as the daemon serves them: installed from its address into an empty directory and used with the examples of their pages. */
import { execFileSync, spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { TestDaemon } from "../../harness/daemon.ts";

const ROOT = join(import.meta.dirname, "../../..");
const SDK = join(ROOT, "sdk/typescript");
const { version } = JSON.parse(readFileSync(join(ROOT, "package.json"), "utf8"));
const WHEEL = `roomd-${version}-py3-none-any.whl`;
/** Packed, with the doc comments of every public member. */
const MAX_SDK_BYTES = 240_000;

let daemon: TestDaemon;
let directory: string;
beforeAll(async () => {
  daemon = await TestDaemon.start();
  directory = mkdtempSync(join(tmpdir(), "roomd-sdk-"));
  writeFileSync(join(directory, "package.json"), JSON.stringify({ type: "module", private: true }));
});
afterAll(async () => {
  await daemon.stop();
  rmSync(directory, { recursive: true, force: true });
});

function run(program: string, args: string[], cwd: string): string {
  const env = { ...process.env, ROOMD_URL: daemon.url, ROOMD_API_KEY: daemon.apiKey };
  return execFileSync(program, args, { cwd, env, encoding: "utf8" });
}

const NPM_INSTALL = ["install", "--no-audit", "--no-fund", "--silent"];

test.each(["roomd-sdk.tgz", WHEEL])("%s requires no key, and is downloaded again only after a change", async (name) => {
  const url = `${daemon.url}/sdk/${name}`;
  const whole = await fetch(url);
  expect([whole.status, whole.headers.get("cache-control")]).toEqual([200, "no-cache"]);
  const size = (await whole.arrayBuffer()).byteLength;
  const head = await fetch(url, { method: "HEAD" });
  expect([head.status, Number(head.headers.get("content-length"))]).toEqual([200, size]);
  const etag = whole.headers.get("etag") ?? "";
  expect(head.headers.get("etag")).toBe(etag);
  for (const known of [etag, `"other", W/${etag}`, "*"]) {
    const again = await fetch(url, { headers: { "if-none-match": known } });
    expect([known, again.status, await again.text()]).toEqual([known, 304, ""]);
  }
  expect((await fetch(url, { headers: { "if-none-match": '"other"' } })).status).toBe(200);
  expect((await fetch(url, { method: "POST" })).status).toBe(405);
  expect((await fetch(`${daemon.url}/sdk/roomd-0.0.1-py3-none-any.whl`)).status).toBe(404);
});

test("the documentation names the wheel of this version", () => {
  for (const page of ["docs/sdk.md", "sdk/python/README.md"]) {
    const named = readFileSync(join(ROOT, page), "utf8").match(/roomd-[\w.]+-py3-none-any\.whl/g);
    expect([page, new Set(named)]).toEqual([page, new Set([WHEEL])]);
  }
});

test("the SDK is small, and contains only the required files", { timeout: 60_000 }, async () => {
  const tarball = await (await fetch(`${daemon.url}/sdk/roomd-sdk.tgz`)).bytes();
  console.log(`roomd-sdk: ${tarball.byteLength} bytes packed`);
  expect(tarball.byteLength).toBeLessThan(MAX_SDK_BYTES);
  writeFileSync(join(directory, "sdk.tgz"), tarball);
  const files = run("tar", ["-tzf", "sdk.tgz"], directory).trim().split("\n");
  const kinds = new Set(files.map((file) => file.replace(/^package\/dist\/.*\.(d\.ts|js)$/, "dist/*.$1")));
  expect([...kinds].sort()).toEqual(
    [
      ...["dist/*.d.ts", "dist/*.js", "package/README.md", "package/dist/LICENSE"],
      ...["package/dist/cjs/package.json", "package/package.json"],
    ].sort(),
  );
  const { dependencies } = JSON.parse(readFileSync(join(SDK, "package.json"), "utf8"));
  expect(dependencies).toBeUndefined();
});

test("Node runs the example from the SDK's page, with import and with require", { timeout: 60_000 }, () => {
  run("npm", [...NPM_INSTALL, `${daemon.url}/sdk/roomd-sdk.tgz`], directory);
  // The first example needs a guest; this one needs none.
  const [, example = ""] =
    /```ts\n(import \{ Roomd \}[^`]+)```/.exec(readFileSync(join(SDK, "README.md"), "utf8")) ?? [];
  writeFileSync(join(directory, "example.js"), example);
  expect(run("node", ["example.js"], directory)).toBe("planner hello\n\n");
  const [first = "", ...rest] = example.split("\n");
  const required = first.replace(/^import (.+) from (.+);$/, "const $1 = require($2);");
  expect(required).toContain("require(");
  writeFileSync(join(directory, "example.cjs"), `${required}\n(async () => {\n${rest.join("\n")}\n})();\n`);
  // Node before 20.19 and 22.12 cannot load modules by require.
  const noModules = ["--no-experimental-require-module", "example.cjs"];
  expect(run("node", noModules, directory)).toBe("planner hello\n\n");
});

test("both module formats of the SDK have types", { timeout: 60_000 }, () => {
  run("npm", [...NPM_INSTALL, `${daemon.url}/sdk/roomd-sdk.tgz`], directory);
  const uses = [
    `import { Roomd, type schemas } from "roomd-sdk";`,
    "const key: schemas.Sandbox | null = null;",
    "// @ts-expect-error",
    "new Roomd().rooms.nonsense();",
    "export default key;",
  ].join("\n");
  const types = join(ROOT, "node_modules/@types");
  for (const extension of ["mts", "cts"]) writeFileSync(join(directory, `uses.${extension}`), uses);
  const strict = ["--strict", "--noEmit", "--module", "nodenext", "--target", "es2022", "--lib", "esnext,dom"];
  const args = [...strict, "--skipLibCheck", "false", "--typeRoots", types, "--types", "node", "uses.mts", "uses.cts"];
  const checked = spawnSync(join(ROOT, "node_modules/.bin/tsc"), args, { cwd: directory, encoding: "utf8" });
  expect(checked.stdout).toBe("");
  expect(checked.status).toBe(0);
});

test("pip installs the wheel, and Python imports the SDK with its types", { timeout: 120_000 }, ({ skip }) => {
  const builder = ["python3", "/usr/bin/python3"].find(
    (python) => spawnSync(python, ["-m", "pip", "--version"]).status === 0,
  );
  if (builder === undefined) {
    console.log("the wheel is not installed, because no Python on this host has pip");
    return skip("no Python has pip");
  }
  const target = join(directory, "python");
  const install = ["-m", "pip", "install", "--no-index", "--no-cache-dir", "--quiet", "--target", target];
  run(builder, [...install, `${daemon.url}/sdk/${WHEEL}`], directory);
  const used =
    "import roomd, pathlib; print(roomd.__version__, (pathlib.Path(roomd.__file__).parent / 'py.typed').exists())";
  const env = { ...process.env, PYTHONPATH: target };
  expect(spawnSync(builder, ["-c", used], { env, encoding: "utf8" }).stdout).toBe(`${version} True\n`);
  const record = readFileSync(join(target, `roomd-${version}.dist-info/RECORD`), "utf8");
  expect(record).not.toMatch(/test|\.ts\b/);
});
