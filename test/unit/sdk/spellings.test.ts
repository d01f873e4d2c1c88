/** Programs that use the names of another sandbox SDK: the compiler's errors, and the runtime errors of unchecked programs. */
import { spawnSync } from "node:child_process";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { expect, test } from "vitest";
import { Roomd, Sandbox, UsageError } from "../../../sdk/typescript/src/index.ts";
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

test("each name with another spelling is a compile error that names it", { timeout: 120_000 }, () => {
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
  const diagnostics = new Map<number, string>();
  let line = -1;
  for (const text of stdout.split("\n")) {
    line = Number(/^[^ ]*program\.ts\((\d+),/.exec(text)?.[1] ?? line);
    diagnostics.set(line, `${diagnostics.get(line) ?? ""} ${text}`);
  }
  expect(diagnostics.get(head.length + 1)).toBeUndefined();
  const silent = CASES.filter(([, expected], index) => !diagnostics.get(head.length + 2 + index)?.includes(expected));
  expect(silent, stdout).toEqual([]);
});

const UNREACHED = "http://127.0.0.1:9";
/** Anything, as a program without types sees it. */
type Untyped = ((...args: unknown[]) => Untyped) & { readonly [Name in Used]: Untyped };
type Used =
  | "commands"
  | "run"
  | "kill"
  | "getHost"
  | "exec"
  | "start"
  | "fork"
  | "setEgress"
  | "setTimeout"
  | "nothing";
const untyped = new Roomd({ url: UNREACHED }).rooms.open("a").sandbox("main") as unknown as Untyped;
const create = (options: unknown) => Sandbox.create(options as object);

test.each<[string, () => unknown, string[]]>([
  ["commands", () => untyped.commands.run("ls"), ["commands", "sandbox.exec(command)"]],
  ["kill", () => untyped.kill(), ["kill", "sandbox.destroy()"]],
  ["getHost", () => untyped.getHost(3000), ["getHost", "(await sandbox.exposePort(port)).url"]],
  ["timeout", () => untyped.exec("ls", { timeout: 5 }), ["exec", "timeout", "timeoutMs", "ms"]],
  ["envs", () => untyped.start("ls", { envs: {} }), ["start", "envs", "env"]],
  ["cwdd", () => untyped.exec("ls", { cwdd: "/" }), ["exec", "cwdd"]],
  ["constructor", () => untyped.exec("ls", { constructor: 1 }), ["exec", "constructor"]],
  ["a list of arguments", () => untyped.exec("ls", ["-l"]), ["exec", 'exec(["ls", "-l"])']],
  ["fork()", () => untyped.fork(), ["fork", '["left","right"]']],
  ["fork(2)", () => untyped.fork(2), ["fork", '["left","right"]']],
  ["fork of one", () => untyped.fork("left"), ["fork", '["left"]']],
  ["setEgress of one", () => untyped.setEgress("a.example"), ["setEgress", '["a.example"]']],
  ["setTimeout in s", () => untyped.setTimeout(600), ["setTimeout", "1000", "600", "600000"]],
  ["a template", () => create("python"), ["Sandbox.create", '{ template: "python" }']],
  ["metadata", () => create({ metadata: {} }), ["Sandbox.create", "metadata", "labels"]],
  ["egress of one", () => create({ egress: "a.example" }), ["egress", '["a.example"]']],
  [
    "memory",
    () => new Roomd().rooms.open("a").createSandbox("b", { memory: 1 } as object),
    ["createSandbox", "memory"],
  ],
])("%s is rejected before any request is sent, with the valid name", async (_, call, names) => {
  const error = await (async () => await call())().catch((thrown: unknown) => thrown);
  expect(error).toBeInstanceOf(UsageError);
  for (const name of names) {
    expect((error as Error).message).toMatch(new RegExp(`(?<![\\w.])${RegExp.escape(name)}(?!\\w)`));
  }
});

test("unused names are absent, and options may be undefined", async () => {
  expect(untyped.nothing).toBeUndefined();
  expect(Object.keys(untyped)).not.toContain("kill");
  const refused = untyped.exec("ls", { timeout: undefined, retry: { after: "interrupted" } });
  await expect(refused).rejects.toMatchObject({ name: "ConnectionError" });
});
