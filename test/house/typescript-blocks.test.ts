/** The TypeScript in the documents: each block is a module of its own, which the SDK's types let through. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";
import { expect, test } from "vitest";
import { blocksOf, PAGES, SDK_PAGE } from "../harness/documents.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const SDK = join(ROOT, "sdk/typescript");

const blocks = [...PAGES, SDK_PAGE].flatMap((page) =>
  blocksOf(page, "ts").map(({ text, line }) => ({ name: `${page.path}:${line}`, text })),
);

/** What is wrong with it, as tsc says. */
function faultsOf(text: string): string {
  const directory = mkdtempSync(join(tmpdir(), "roomd-blocks-"));
  try {
    const compilerOptions = {
      noEmit: true,
      target: "ESNext",
      module: "Preserve",
      moduleResolution: "bundler",
      lib: ["ESNext", "DOM"],
      strict: true,
      skipLibCheck: true,
      allowImportingTsExtensions: true,
      typeRoots: [join(ROOT, "node_modules/@types")],
      types: ["node"],
      paths: {
        "roomd-sdk": [join(SDK, "src/index.ts")],
        "roomd-sdk/*": [join(SDK, "src/*.ts")],
      },
    };
    symlinkSync(join(ROOT, "node_modules"), join(directory, "node_modules"));
    writeFileSync(join(directory, "tsconfig.json"), JSON.stringify({ compilerOptions, files: ["block.ts"] }));
    // One that goes on from another has what that has made.
    const known = text.includes("import ") ? "" : 'import { Roomd } from "roomd-sdk";\nconst roomd = new Roomd();\n';
    writeFileSync(join(directory, "block.ts"), `${known}${text}\nexport {};\n`);
    return spawnSync(join(ROOT, "node_modules/.bin/tsc"), ["-p", directory], { encoding: "utf8" }).stdout;
  } finally {
    rmSync(directory, { recursive: true, force: true });
  }
}

test("blocks are found, and errors in them are detected", { timeout: 60_000 }, () => {
  expect(blocks.length).toBeGreaterThan(4);
  expect(faultsOf("await roomd.rooms.creat();")).toContain("creat");
});

test.each(blocks)("$name", { timeout: 60_000 }, ({ text }) => {
  expect(faultsOf(text)).toBe("");
});
