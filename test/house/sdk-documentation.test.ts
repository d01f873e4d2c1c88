/** Doc comments of both SDKs: every public member has one, and the references list it. */
import { spawnSync } from "node:child_process";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { typescriptDeclarations } from "../../sdk/reference.ts";
import { pageAt } from "../harness/documents.ts";

const SDK = resolve(import.meta.dirname, "../../sdk/python");
/** Members whose meaning their declaration says: what every error has, and constructors that are closed. */
const PLAIN = /^ {4}(name: string;|name: "\w+";|private constructor\(\);)$/;
const MEMBER = /^ {4}(?:readonly |static |get |async )*(?:"?([\w-]+)"?|\[[\w.]+\])\??[(:<]/;

/** Declarations and members without a doc comment, each as `Name: line`. Of overloads the first has it. */
function undocumented(declarations: readonly string[]): string[] {
  return declarations.flatMap((declaration) => {
    const lines = declaration.split("\n");
    const head = lines.findIndex((line) => line.startsWith("export "));
    const name = /(?:class|interface|type|function|const) (\w+)/.exec(lines[head] ?? "")?.[1] ?? "?";
    const found = head === 0 ? [`${name}: ${lines[0]}`] : [];
    if (!/^export (declare )?(abstract )?(class|interface) /.test(lines[head] ?? "")) return found;
    let before = "";
    for (const [index, line] of lines.entries()) {
      const member = index <= head || PLAIN.test(line) ? null : MEMBER.exec(line);
      if (member === null) continue;
      const isOverload = member[1] !== undefined && member[1] === before;
      before = member[1] ?? "";
      if (!isOverload && !lines[index - 1]?.trim().endsWith("*/")) found.push(`${name}: ${line.trim()}`);
    }
    return found;
  });
}

test("members without a comment are detected", () => {
  const text = ["/** A. */", "export interface A {", "    /** Of a. */", "    a: 1;", "    b(): 2;", "}"].join("\n");
  expect(undocumented([text, "export type B = 1;"])).toEqual(["A: b(): 2;", "B: export type B = 1;"]);
});

test("every public member of the TypeScript SDK has a doc comment, and is in the reference", {
  timeout: 120_000,
}, () => {
  const declarations = typescriptDeclarations();
  expect(declarations.length).toBeGreaterThan(60);
  expect(undocumented(declarations)).toEqual([]);
  const { text } = pageAt("docs/sdk-typescript.md");
  expect(declarations.filter((each) => !text.includes(each))).toEqual([]);
});

test("every public member of the Python SDK has a docstring, and is in the reference", { timeout: 120_000 }, () => {
  const run = spawnSync("python3", [join(SDK, "tests/documentation.py")], {
    encoding: "utf8",
    env: { ...process.env, PYTHONPATH: join(SDK, "src"), PYTHONDONTWRITEBYTECODE: "1" },
  });
  expect(run.stderr).toBe("");
  const { members, undocumented } = JSON.parse(run.stdout) as { members: string[]; undocumented: string[] };
  expect(undocumented).toEqual([]);
  expect(members.length).toBeGreaterThan(300);
  const { text } = pageAt("docs/sdk-python.md");
  const classes = new Map<string, string>();
  // Two packages have classes of the same name.
  for (const [body, name = ""] of text.matchAll(/^class (\w+)[\s\S]*?(?=^\S|^```)/gm)) {
    classes.set(name, `${classes.get(name) ?? ""}${body}`);
  }
  const missing = members.filter((each) => {
    const [owner = "", name = ""] = each.split(".");
    return !new RegExp(`\\b${name}\\b`).test(classes.get(owner) ?? "");
  });
  expect(missing).toEqual([]);
});
