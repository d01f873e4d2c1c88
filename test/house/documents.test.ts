/** The documents against what is there: every path they name exists, and what is generated is current. */
import { spawnSync } from "node:child_process";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { exampleConfig } from "../../daemon/core/config.ts";
import { CHECK_IDS } from "../../daemon/domain/service/checks.ts";
import { type Operation, SCOPES, type Scope } from "../../shared/api/contract.ts";
import { operations } from "../../shared/api/operations.ts";
import { TOOLS } from "../../shared/api/tools.ts";
import { codeOf, filesOf, read } from "./sources.ts";

const DOCUMENTS = ["README.md", "daemon/README.md"];
const SOURCE_FILE = /\.(ts|sql|toml|sh|service|md)$/;

/** What a document names as a file or folder: its links, and the words of its code that look like one. */
function pathsIn(text: string): string[] {
  const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map((match) => String(match[1]));
  const spans = [...text.matchAll(/```[^\n]*\n([\s\S]*?)```|`([^`\n]+)`/g)].map((match) => match[1] ?? match[2] ?? "");
  const words = spans.flatMap((span) => span.split(/[\s"'(),;:|=]+/));
  return links
    .filter((link) => !/^\w+:/.test(link))
    .concat(words.filter(looksLikeOurs))
    .map((path) => path.replace(/[.…]+$/, ""));
}

/** Every file of the repository and every folder that holds one; an empty folder is in no clone. */
const kept = new Set(
  filesOf(".").flatMap((path) => path.split("/").map((_, i, parts) => parts.slice(0, i + 1).join("/"))),
);
const folders = new Set([...kept].map((path) => String(path.replace(/^daemon\/(domain\/)?/, "").split("/")[0])));

function looksLikeOurs(word: string): boolean {
  if (/[<>*{}$\\…]|^\/|^~|^\w+:\/\//.test(word) || !word.includes("/")) return false;
  return folders.has(String(word.replace(/^\.\//, "").split("/")[0])) || SOURCE_FILE.test(word);
}

describe.each(DOCUMENTS)("%s", (document) => {
  const { text } = read(document);

  test("names only what exists", () => {
    // The map leaves out `domain/` before a noun.
    const bases = ["", dirname(document), "daemon/domain"];
    const exists = (path: string) => bases.some((base) => kept.has(join(base, path).replace(/\/$/, "")));
    const named = pathsIn(text);
    expect(named.length).toBeGreaterThan(3);
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });
});

test("daemon/README.md names every folder of the daemon", () => {
  const { text } = read("daemon/README.md");
  const placed = filesOf("daemon").map((path) => path.split("/").slice(1, -1));
  const names = new Set(placed.flatMap(([layer, noun]) => (layer === "domain" ? `domain/${noun}` : (layer ?? []))));
  const unnamed = [...names].filter((name) => !text.includes(`daemon/${name}`));
  expect(unnamed).toEqual([]);
});

test("packaging/config.example.toml is what the configuration says", () => {
  expect(read("packaging/config.example.toml").text).toBe(exampleConfig());
});

test("what the README calls besides roomd is installed on every host", () => {
  expect(read("README.md").text).toMatch(/^curl /m);
  const always = /^wanted=\((.*)\)$/m.exec(read("packaging/install-host").text)?.[1]?.split(" ");
  expect(always).toContain("curl");
});

test("the README says of every check what to do when it is not ok", () => {
  const { text } = read("README.md");
  const table = text
    .slice(text.indexOf("\n## Troubleshooting\n"))
    .split("\n\n")
    .find((part) => part.startsWith("| Check"));
  const told = [...(table ?? "").matchAll(/^\| `(\w+)` /gm)].map(([, id]) => id);
  expect(told).toEqual([...CHECK_IDS]);
});

test("the README's key for models has the scopes that the tools use, and no others", () => {
  const line = /^roomd (key create --name models .*)$/m.exec(read("README.md").text)?.[1] ?? "";
  const { stdout } = spawnSync("bash", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" });
  const given = stdout.match(/(?<=^--scope=).*$/gm) ?? [];
  // A tool asks further operations on its way.
  const camel = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const names = codeOf("daemon/edge/mcp").flatMap(({ text }) =>
    [...text.matchAll(/\.ask\((\w+),/g)].map(([, name]) => name),
  );
  const asked = Object.values<Operation>(operations).filter(({ name }) => names.includes(camel(name)));
  expect(asked.map(({ name }) => name)).toContain("sandbox_get");
  const used = [...[...TOOLS.values()].map(({ operation }) => operation), ...asked].map(({ access }) => access);
  const scopes = SCOPES.filter((scope: Scope) => used.includes(scope));
  expect(given.sort()).toEqual([...scopes].sort());
});
