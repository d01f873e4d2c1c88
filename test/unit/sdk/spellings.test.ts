/** What the compiler says of a program that uses the names of another sandbox SDK. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { scratch } from "../cli/cli-fixture.ts";

const ROOT = join(import.meta.dirname, "../../..");
const INDEX = join(ROOT, "sdk/typescript/src/index.ts");
const CASES = [
  ['sandbox.commands.run("ls")', "sandbox.exec(command)"],
  ['sandbox.process.executeCommand("ls")', "sandbox.exec(command)"],
  ['sandbox.runCommand("ls")', "sandbox.exec(command)"],
  ["sandbox.kill()", "sandbox.destroy()"],
  ["sandbox.stop()", "sandbox.hibernate()"],
  ["sandbox.delete()", "sandbox.destroy()"],
  ["sandbox.pause()", "sandbox.hibernate()"],
  ["sandbox.getHost(3000)", "exposePort"],
  ["sandbox.getPreviewLink(3000)", "exposePort"],
  ["sandbox.domain(3000)", "exposePort"],
  ['sandbox.fs.uploadFile("a")', "sandbox.files"],
  ["sandbox.pty.create({})", "openTerminal"],
  ["sandbox.getInfo()", "sandbox.get()"],
  ['sandbox.exec("ls", { envs: { A: "b" } })', '"env"'],
  ['sandbox.exec("ls", { timeout: 5 })', "timeoutMs"],
  ['sandbox.exec("ls", { background: true })', "sandbox.start"],
  ['Sandbox.create({ envs: { A: "b" } })', '"env"'],
  ['Sandbox.create({ envVars: { A: "b" } })', '"env"'],
  ['Sandbox.create({ metadata: { a: "b" } })', '"labels"'],
  ["Sandbox.create({ timeout: 60 })", "maxDurationSeconds"],
  ["Sandbox.create({ autoStopInterval: 15 })", "idleTimeoutSeconds"],
  ['Sandbox.create({ runtime: "node24" })', '"template"'],
  ["Sandbox.create({ ports: [3000] })", "exposePort"],
] as const;
const RIGHT = 'sandbox.exec("ls", { env: { A: "b" }, timeoutMs: 5, waitMs: 5 })';

test("each name that has another one here is an error that says it", { timeout: 120_000 }, () => {
  using directory = scratch();
  const head = [`import { Sandbox } from ${JSON.stringify(INDEX)}`, "declare const sandbox: Sandbox"];
  const source = [...head, RIGHT, ...CASES.map(([line]) => line)].map((line) => `${line};`).join("\n");
  writeFileSync(join(directory.path, "program.ts"), source);
  const compilerOptions = {
    ...{ strict: true, noEmit: true, skipLibCheck: true, allowImportingTsExtensions: true, moduleDetection: "force" },
    ...{
      target: "esnext",
      module: "preserve",
      moduleResolution: "bundler",
      lib: ["esnext", "dom"],
      types: ["node"],
      typeRoots: [join(ROOT, "node_modules/@types")],
    },
  };
  writeFileSync(join(directory.path, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["program.ts"] }));
  const compiler = join(ROOT, "node_modules/.bin/tsc");
  const { stdout } = spawnSync(compiler, ["--pretty", "false", "-p", directory.path], { encoding: "utf8" });
  const told = new Map<number, string>();
  let line = -1;
  for (const text of stdout.split("\n")) {
    line = Number(/^[^ ]*program\.ts\((\d+),/.exec(text)?.[1] ?? line);
    told.set(line, `${told.get(line) ?? ""} ${text}`);
  }
  expect(told.get(head.length + 1)).toBeUndefined();
  const silent = CASES.filter(([, said], index) => !told.get(head.length + 2 + index)?.includes(said));
  expect(silent, stdout).toEqual([]);
});
