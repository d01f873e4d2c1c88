/** Comparison of the documents with the repository: the paths, commands and keys that they name exist, and generated pages are current. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { describe, expect, test } from "vitest";
import { referencePage } from "../../daemon/cli/reference.ts";
import { CONFIG_KEYS, exampleConfig, loadConfig } from "../../daemon/core/config/config.ts";
import { CHECK_IDS } from "../../daemon/domain/service/checks.ts";
import { readRecipe } from "../../daemon/domain/templates/recipe.ts";
import { pythonPage, typescriptPage } from "../../sdk/reference.ts";
import { type Operation, SCOPES, type Scope } from "../../shared/api/contract.ts";
import { TOOLS } from "../../shared/api/mcp/tools.ts";
import { operations } from "../../shared/api/operations.ts";
import { clientWays } from "../../shared/prompts/clients.ts";
import { blocksOf, PAGES, pageAt } from "../harness/documents.ts";
import { unknownIn } from "./command-lines.ts";
import { codeOf, filesOf, read } from "./sources.ts";

const ARCHITECTURE = filesOf("docs/architecture");
const DOCUMENTS = [
  ...PAGES.map(({ path }) => path),
  ...["CONTRIBUTING.md", "daemon/README.md", "test/README.md"],
  ...ARCHITECTURE,
  ...filesOf("docs/decisions"),
];
const ARCHITECTURE_LINES = 150;
const README_LINES = 250;
/** Kinds of fenced blocks: each kind is tested, except `text`, which is only shown. */
const KINDS = [
  ...["sh test", "sh operations", "sh", "toml", "toml recipe", "json", "ts", "python", "text"],
  ...["ts declaration", "python declaration"],
];
const FENCED = /^```.*?^```$/gms;
const SOURCE_FILE = /\.(ts|sql|toml|sh|service|md)$/;

/** Names of files and folders in a document: its links, and words of its code that look like one. */
function pathsIn(text: string): string[] {
  const links = [...text.matchAll(/\]\(([^)#\s]+)[^)]*\)/g)].map((match) => String(match[1]));
  const spans = [...text.matchAll(/```[^\n]*\n([\s\S]*?)```|`([^`\n]+)`/g)].map((match) => match[1] ?? match[2] ?? "");
  const words = spans.flatMap((span) => span.split(/[\s"'(),;:|=]+/));
  return links
    .filter((link) => !/^\w+:/.test(link))
    .concat(words.filter(looksLikeOurs))
    .map((path) => path.replace(/[.…]+$/, ""));
}

/** Rows of tables that have more or fewer cells than the first row; readers drop those or leave columns empty. */
function raggedRowsIn(text: string): string[] {
  const cells = (row: string) => row.replaceAll("\\|", "").split("|").length;
  const tables = text.replace(FENCED, "").match(/(?:^\|.*\n)+/gm) ?? [];
  return tables.flatMap((table) => {
    const [head = "", ...rows] = table.trimEnd().split("\n");
    return rows.filter((row) => cells(row) !== cells(head));
  });
}

test("a ragged table is detected", () => {
  expect(raggedRowsIn("| a | b | c |\n| - | - |\n| 1 | `2 \\| 3` | 4 |\n")).toEqual(["| - | - |"]);
});

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

  test("names only existing paths", () => {
    // Pages of the architecture leave out `daemon/`, and `domain/` before a noun.
    const bases = ["", dirname(document), "daemon", "daemon/domain"];
    const exists = (path: string) => bases.some((base) => kept.has(join(base, path).replace(/\/$/, "")));
    const named = pathsIn(text);
    expect(named.filter((path) => !exists(path))).toEqual([]);
  });
});

test("paths are detected in documents", () => {
  for (const document of ["README.md", "daemon/README.md"])
    expect(pathsIn(read(document).text).length).toBeGreaterThan(3);
});

test("daemon/README.md names every folder of the daemon", () => {
  const { text } = read("daemon/README.md");
  const placed = filesOf("daemon").map((path) => path.split("/").slice(1, -1));
  const names = new Set(placed.flatMap(([layer, noun]) => (layer === "domain" ? `domain/${noun}` : (layer ?? []))));
  const unnamed = [...names].filter((name) => !text.includes(`daemon/${name}`));
  expect(unnamed).toEqual([]);
});

test("packaging/config.example.toml matches the configuration", () => {
  expect(read("packaging/config.example.toml").text).toBe(exampleConfig());
});

test("README.md is short, and docs/README.md lists every page", () => {
  expect(pageAt("README.md").text.split("\n").length).toBeLessThanOrEqual(README_LINES);
  const listed = [...pageAt("docs/README.md").text.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => `docs/${name}`);
  const pages = PAGES.map(({ path }) => path).filter((path) => !path.endsWith("README.md"));
  expect([...new Set(listed)].sort()).toEqual(pages);
});

test("pages of the architecture are short, and the first lists the others", () => {
  const first = "docs/architecture/README.md";
  const listed = [...read(first).text.matchAll(/\]\(([\w-]+\.md)\)/g)].map(([, name]) => `docs/architecture/${name}`);
  expect(listed.sort()).toEqual(ARCHITECTURE.filter((path) => path !== first).sort());
  for (const page of ARCHITECTURE) expect(read(page).text.split("\n").length).toBeLessThanOrEqual(ARCHITECTURE_LINES);
});

test("docs/reference.md matches the commands: otherwise `bun run reference`", () => {
  expect(pageAt("docs/reference.md").text).toBe(referencePage());
});

test("the references of the SDKs are current: otherwise `bun run reference:sdk`", { timeout: 60_000 }, () => {
  expect(pageAt("docs/sdk-typescript.md").text).toBe(typescriptPage());
  expect(pageAt("docs/sdk-python.md").text).toBe(pythonPage());
});

describe.each(PAGES)("$path", (page) => {
  test("has tables with a cell per column in each row", () => {
    expect(raggedRowsIn(page.text)).toEqual([]);
  });

  test("has blocks of known languages, which can be parsed", () => {
    expect(page.blocks.map(({ kind }) => kind).filter((kind) => !KINDS.includes(kind))).toEqual([]);
    for (const { text } of blocksOf(page, "json")) expect(() => JSON.parse(text)).not.toThrow();
    for (const { text } of blocksOf(page, "toml")) expect(Object.keys(originsOf(text))).not.toEqual([]);
    for (const { text } of blocksOf(page, "toml recipe")) {
      const name = /^template_id = "(.*)"$/m.exec(text)?.[1] ?? "";
      expect(readRecipe(name, text).template_id).toBe(name);
    }
    for (const { kind, text } of page.blocks.filter(({ kind }) => kind.startsWith("sh"))) {
      expect([kind, spawnSync("bash", ["-n"], { input: text, encoding: "utf8" }).stderr]).toEqual([kind, ""]);
    }
    const parse = ["-c", "import ast, sys; ast.parse(sys.stdin.read())"];
    for (const { text } of blocksOf(page, "python")) {
      expect(spawnSync("python3", parse, { input: text, encoding: "utf8" }).stderr).toBe("");
    }
  });

  test("names existing commands, options and settings", () => {
    const commands = page.blocks.filter(({ kind }) => kind.startsWith("sh")).flatMap(({ text }) => text.split("\n"));
    const spans = [...page.text.matchAll(/`([^`\n]+)`/g)].map(([, span]) => String(span));
    expect([...commands, ...spans].flatMap(unknownIn)).toEqual([]);
    const sections = new Set(Object.keys(CONFIG_KEYS).flatMap((key) => key.split(".").slice(0, -1)));
    const keys = spans.filter((span) => /^[a-z]+(\.[a-z_]+)+$/.test(span) && sections.has(String(span.split(".")[0])));
    expect(keys.filter((key) => !(key in CONFIG_KEYS) && !NO_KEYS.includes(key))).toEqual([]);
  });

  test("links to existing headings", () => {
    const links = [...page.text.matchAll(/\]\(([\w/.-]*)#([\w-]+)\)/g)];
    const broken = links.filter(([, path = "", anchor = ""]) => {
      const target = path === "" ? page : pageAt(join(dirname(page.path), path));
      return !anchorsOf(target.text).includes(anchor);
    });
    expect(broken.map(([link]) => link)).toEqual([]);
  });
});

/** Fields and events that look like keys of the configuration. */
const NO_KEYS = [
  "audit.anchor_lost",
  "cluster.change_recovered",
  "cluster.ends_put_again",
  "cluster.room_name_lost",
  "drive.state",
  "egress.denied",
];

/** The values that a file of this text sets; throws like the daemon if it is invalid. */
function originsOf(toml: string): object {
  const home = mkdtempSync("/tmp/roomd-t-");
  try {
    const file = join(home, "config.toml");
    writeFileSync(file, toml);
    const { origins } = loadConfig({ file, env: {} });
    return Object.fromEntries(Object.entries(origins).filter(([, origin]) => origin === file));
  } finally {
    rmSync(home, { recursive: true });
  }
}

/** A page's headings as a code host makes anchors of them. */
function anchorsOf(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map(([, title = ""]) =>
    title
      .toLowerCase()
      .replace(/[^\w\s-]/g, "")
      .replaceAll(" ", "-"),
  );
}

test("programs that docs/guide.md calls are installed on every host", () => {
  expect(pageAt("docs/guide.md").text).toMatch(/curl /);
  const always = /^wanted=\((.*)\)$/m.exec(read("packaging/install-host").text)?.[1]?.split(" ");
  expect(always).toContain("curl");
});

test("docs/troubleshooting.md has a remedy for every check", () => {
  const { text } = pageAt("docs/troubleshooting.md");
  const table = text.split("\n\n").find((part) => part.startsWith("| Check"));
  const listed = [...(table ?? "").matchAll(/^\| `(\w+)` /gm)].map(([, id]) => id);
  expect(listed).toEqual([...CHECK_IDS]);
});

test("docs/mcp.md's key for models has exactly the scopes that the tools require", () => {
  const line = /^roomd (key create --name models .*)$/m.exec(pageAt("docs/mcp.md").text)?.[1] ?? "";
  const { stdout } = spawnSync("bash", ["-c", `printf '%s\\n' ${line}`], { encoding: "utf8" });
  const given = stdout.match(/(?<=^--scope=).*$/gm) ?? [];
  // A tool calls further operations internally; the template operation is not among the usual ones.
  const camel = (name: string) => name.replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
  const usual = codeOf("daemon/edge/mcp").filter(({ path }) => !path.endsWith("tools/build.ts"));
  const names = usual.flatMap(({ text }) => [...text.matchAll(/\.ask\((\w+),/g)].map(([, name]) => name));
  const called = Object.values<Operation>(operations).filter(({ name }) => names.includes(camel(name)));
  expect(called.map(({ name }) => name)).toContain("sandbox_get");
  const used = [...[...TOOLS.values()].map(({ operation }) => operation), ...called].map(({ access }) => access);
  const scopes = SCOPES.filter((scope: Scope) => used.includes(scope));
  expect(given.sort()).toEqual([...scopes].sort());
});

describe.each(["README.md", "docs/mcp.md"])("%s", (document) => {
  test("explains each MCP client's setup, with sign-in and with a key, as the pages do", () => {
    const bare = (text: string) => text.replaceAll(/\s/g, "");
    const text = bare(read(document).text);
    const texts = clientWays("http://127.0.0.1:8080").flatMap(({ client, signsIn, hasKey }) => [
      client,
      signsIn.text,
      hasKey.text,
    ]);
    expect(texts.filter((each) => !text.includes(bare(each)))).toEqual([]);
  });
});

test("command lines that the hub's pages offer to copy are valid", () => {
  const sources = codeOf("daemon/web").filter(({ path }) => path.endsWith(".tsx"));
  const lines = sources.flatMap(({ text }) =>
    [...text.matchAll(/<Line[^>]*? words=\{\[(.*?)\]\}/gs)].map(([, words = ""]) => {
      // An expression stands for a name.
      const each = words
        .replaceAll(/\.\.\.\w+\(\[(.*?)\].*?\)/g, "$1")
        .split(/,(?=(?:[^"]*"[^"]*")*[^"]*$)/)
        .map((word) => /^\s*"(.*)"\s*$/s.exec(word)?.[1] ?? "NAME");
      return `roomd ${each.join(" ")}`;
    }),
  );
  expect(lines.length).toBeGreaterThan(12);
  expect(lines.flatMap(unknownIn)).toEqual([]);
});
