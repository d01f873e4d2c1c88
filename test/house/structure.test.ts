/** Structure of the sources: the size of folders, and names of types that mean several things. */
import { dirname } from "node:path";
import { expect, test } from "vitest";
import { codeOf, filesOf, read } from "./sources.ts";

const MAX_FILES = 40;
const MAX_DECLARATIONS = 3;
const LIST = "test/house/type-names.json";
/** Local to a file by convention. */
const EXEMPT = ["Input", "Deps"];
const FOLDERS = ["daemon", "guest-agent", "shared", "sdk/typescript/src", "test"];
const DECLARATION = /^(?:export )?(?:declare )?(?:abstract )?(?:interface|type|class|enum) (\w+)/gm;

test(`no folder has more than ${MAX_FILES} files of code`, () => {
  const counts = new Map<string, number>();
  for (const path of filesOf("daemon", "guest-agent", "shared", "sdk", "test", "packaging", "examples")) {
    if (/\.(tsx?|mjs|py)$/.test(path)) counts.set(dirname(path), (counts.get(dirname(path)) ?? 0) + 1);
  }
  expect([...counts].filter(([, count]) => count > MAX_FILES)).toEqual([]);
});

test(`no name of a type is declared in more than ${MAX_DECLARATIONS} files, except listed ones, whose number only shrinks`, () => {
  const files = new Map<string, number>();
  for (const { text } of codeOf(...FOLDERS)) {
    for (const name of new Set([...text.matchAll(DECLARATION)].map((match) => String(match[1])))) {
      files.set(name, (files.get(name) ?? 0) + 1);
    }
  }
  const found = Object.fromEntries(
    [...files].filter(([name, count]) => count > MAX_DECLARATIONS && !EXEMPT.includes(name)).sort(),
  );
  const listed: Record<string, number> = JSON.parse(read(LIST).text);
  const more = Object.keys(found).filter((name) => (found[name] ?? 0) > (listed[name] ?? MAX_DECLARATIONS));
  expect(more, "name the type by its noun").toEqual([]);
  const fewer = Object.keys(listed).filter((name) => (found[name] ?? 0) < (listed[name] ?? 0));
  expect(fewer, `lower the numbers in ${LIST}`).toEqual([]);
});
