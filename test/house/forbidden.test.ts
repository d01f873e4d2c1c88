/** Search for forbidden words in the repository. The words are assembled here, so that this file contains none. */
import { describe, expect, test } from "vitest";
import { codeOf, filesOf, linesThatMatch, read, type Source } from "./sources.ts";

const CODE_FOLDERS = ["shared", "daemon", "guest-agent", "test"];
const code = codeOf(...CODE_FOLDERS);
const tests = code.filter(({ path }) => path.startsWith("test/"));
const TEXT = /(\.(tsx?|md|toml|json|sql|service|yml|yaml|html|css|conf)|\/[^./]+)$/;
/** Everything a person writes here; the lock file is npm's. */
const written = filesOf(...CODE_FOLDERS, "docs", "packaging", ".ci")
  .concat("README.md", "package.json", "vitest.config.ts")
  .filter((path) => TEXT.test(`/${path}`))
  .map(read);

const found = (sources: readonly Source[], pattern: RegExp) =>
  sources.flatMap((source) => linesThatMatch(source, pattern));

/** The same lines with comments and the content of strings blanked, as far as one can without parsing. */
function bare({ path, text }: Source): Source {
  const blank = (match: string) => match.replace(/[^\n]/g, " ");
  const parts = /\/\*[\s\S]*?\*\/|(?<=^|\s)\/\/[^\n]*|"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'/g;
  return { path, text: text.replace(parts, blank) };
}

/** The word in a position in which it has an effect. */
const asComment = (word: string) => `/[/*]\\s*@?${word}`;

describe("code", () => {
  test("of the product never uses the type any", () => {
    const anyType = /(?:[:<|&,=(]|\bas|\bextends)\s*any\b(?!\s*[:(.])/;
    // Tests inspect responses as clients do; there the linter requires a reason.
    const product = code.filter(({ path }) => !path.startsWith("test/"));
    expect(found(product.map(bare), anyType)).toEqual([]);
  });

  test("contains no notes of unfinished work", () => {
    const words = ["TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK"];
    expect(found(written, new RegExp(`\\b(${words.join("|")})\\b`))).toEqual([]);
  });

  test("suppresses compiler and linter errors only with a reason", () => {
    const never = new RegExp(
      ["ts-ignore", "ts-nocheck", "biome-ignore-all", "eslint-disable"].map(asComment).join("|"),
    );
    const silent = /[/*]\s*(@ts-expect-error|biome-ignore[^:]*:?)\s*$/;
    expect(found(code, never)).toEqual([]);
    expect(found(code, silent)).toEqual([]);
  });
});

describe("tests", () => {
  test("are all run: a skip is decided inside the test, with a reason", () => {
    const never = /\b(test|it|describe|suite)(\.\w+)*\.(skip|todo|only|fails)\b/;
    const silent = /\.skip\(\s*\)/;
    expect(found(tests.map(bare), never)).toEqual([]);
    expect(found(tests, silent)).toEqual([]);
  });

  test("are skipped by a condition only if the reason is printed", () => {
    const conditional = tests.filter(({ text }) => /\.(skipIf|runIf)\(/.test(text));
    const silent = conditional.filter(({ text }) => !/console\.(log|warn|error)\(/.test(text));
    expect(silent.map(({ path }) => path)).toEqual([]);
  });
});

describe("the repository names no download host", () => {
  test("in the lock file, which leaves the registry to npm's configuration", () => {
    const lock = JSON.parse(read("package-lock.json").text) as {
      packages: Record<string, { resolved?: string; link?: true }>;
    };
    const resolved = Object.entries(lock.packages).filter(([, each]) => !each.link && each.resolved !== undefined);
    expect(resolved.map(([name]) => name)).toEqual([]);
    expect(Object.keys(lock.packages).length).toBeGreaterThan(10);
  });

  test("in scripts and settings", () => {
    const scripts = written.filter(({ path }) => /^(packaging|\.ci)\/|^(package\.json|bunfig\.toml)$/.test(path));
    const elsewhere =
      /\bregistry\s*=|https?:\/\/(?!127\.0\.0\.1|localhost|room\.internal|\$|www\.apache\.org|json-schema\.org)/;
    expect(found(scripts, elsewhere)).toEqual([]);
    expect(filesOf(".").filter((path) => path.endsWith(".npmrc"))).toEqual([]);
  });
});

test("no selector is in two of the hub's style sheets, because all of them apply to every page", () => {
  const sheets = new Map<string, string[]>();
  for (const { path, text } of filesOf("daemon/web")
    .filter((each) => each.endsWith(".css"))
    .map(read)) {
    const rules = text.replace(/\/\*[\s\S]*?\*\//g, "").matchAll(/([^{};]+)\{/g);
    const selectors = new Set([...rules].flatMap(([, list = ""]) => list.split(",").map((each) => each.trim())));
    for (const each of selectors) {
      if (!each.startsWith("@")) sheets.set(each, [...(sheets.get(each) ?? []), path]);
    }
  }
  expect(sheets.size).toBeGreaterThan(100);
  expect([...sheets].filter(([, paths]) => paths.length > 1)).toEqual([]);
});
