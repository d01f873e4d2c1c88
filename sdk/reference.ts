/** Reference pages of both SDKs, made from their declarations and doc comments: `bun run reference:sdk`. */
import { spawnSync } from "node:child_process";
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "..");
const TYPESCRIPT = join(ROOT, "sdk/typescript");
/** The interfaces for programs; the adapters are for frameworks. */
const ENTRIES = ["index.ts", "e2b.ts"];
const PAGES = { typescript: "docs/sdk-typescript.md", python: "docs/sdk-python.md" };

const START = /^export (?:declare )?(?:abstract )?(?:class|interface|type|function|const) (\w+)/;
const PRIVATE = "    #private;";

interface Section {
  heading: string;
  declarations: readonly string[];
}

/** The page for TypeScript: what each public module exports. Runs the compiler. */
export function typescriptPage(): string {
  return page("TypeScript SDK", "roomd-sdk", "ts declaration", typescriptSections());
}

/** The public declarations of the TypeScript SDK, each with its doc comment. Runs the compiler. */
export function typescriptDeclarations(): string[] {
  return typescriptSections().flatMap(({ declarations }) => declarations);
}

function typescriptSections(): Section[] {
  return publicModules().map(({ file, names }) => {
    const found = [...declarationsOf(file)].filter(([name]) => names === null || names.includes(name));
    return { heading: file, declarations: found.map(([, text]) => text) };
  });
}

/** The page for Python, by `sdk/python/reference.py`. */
export function pythonPage(): string {
  const modules = JSON.parse(run("python3", [join(ROOT, "sdk/python/reference.py")])) as {
    module: string;
    declarations: string[];
  }[];
  const sections = modules.map(({ module, declarations }) => ({ heading: module, declarations }));
  return page("Python SDK", "roomd", "python declaration", sections);
}

function page(title: string, name: string, kind: string, sections: readonly Section[]): string {
  const shown = sections.filter(({ declarations }) => declarations.length > 0);
  return `${[
    `# Reference of the ${title}`,
    `The public declarations of the package \`${name}\`, made from its source by \`bun run reference:sdk\`. [SDKs](sdk.md) introduces them.`,
    ...shown.flatMap(({ heading, declarations }) => [
      `## ${heading}`,
      `\`\`\`${kind}\n${declarations.join("\n\n")}\n\`\`\``,
    ]),
  ].join("\n\n")}\n`;
}

let emitted: string | null = null;

/** The directory of the `.d.ts` files, emitted once. */
function emitDeclarations(): string {
  if (emitted !== null) return emitted;
  const directory = mkdtempSync(join(tmpdir(), "roomd-declarations-"));
  process.once("exit", () => rmSync(directory, { recursive: true, force: true }));
  const options = ["--noCheck", "--emitDeclarationOnly", "--outDir", directory];
  run(join(ROOT, "node_modules/.bin/tsc"), ["-p", TYPESCRIPT, ...options]);
  emitted = directory;
  return directory;
}

/** The modules that the entry points re-export, and their names; null for all of one. The generated schemas are in the OpenAPI document. */
function publicModules(): { file: string; names: string[] | null }[] {
  const index = ENTRIES.map((entry) => readFileSync(join(TYPESCRIPT, "src", entry), "utf8")).join("\n");
  const exports = index.matchAll(/^export (?:type )?(?:\{(?<names>[^}]*)\}|\*) from "\.\/(?<file>[\w/-]+)\.ts";/gm);
  return [...exports].map(({ groups }) => ({
    file: String(groups?.file),
    names:
      groups?.names === undefined
        ? null
        : [...groups.names.matchAll(/(?:type )?(\w+)(?: as \w+)?/g)].map(([, name]) => String(name)),
  }));
}

/** The exported declarations of a module by name, each with its doc comment. Nested lines are indented, top-level ones are not. */
function declarationsOf(file: string): Map<string, string> {
  const found = new Map<string, string>();
  let comment: string[] = [];
  let open: { name: string; lines: string[] } | null = null;
  for (const line of readFileSync(join(emitDeclarations(), `${file}.d.ts`), "utf8").split("\n")) {
    const name = START.exec(line)?.[1];
    if (name !== undefined) {
      open = { name, lines: [...comment, line] };
      comment = [];
    } else if (open) {
      open.lines.push(line);
    } else if (/^\/\*\*|^ \*/.test(line)) {
      comment = line.startsWith("/**") ? [line] : [...comment, line];
    } else {
      comment = [];
    }
    if (open && (/^\}/.test(line) || /^\S.*[;}]$/.test(line))) {
      const text = open.lines.filter((each) => each !== PRIVATE).join("\n");
      found.set(open.name, found.has(open.name) ? `${found.get(open.name)}\n${text}` : text);
      open = null;
    }
  }
  return found;
}

function run(program: string, args: string[]): string {
  const { status, stdout, stderr } = spawnSync(program, args, { encoding: "utf8", maxBuffer: 16 * 1024 * 1024 });
  if (status !== 0) throw new Error(`${program} failed: ${stdout}${stderr}`);
  return stdout;
}

if (import.meta.main) {
  writeFileSync(join(ROOT, PAGES.typescript), typescriptPage());
  writeFileSync(join(ROOT, PAGES.python), pythonPage());
}
