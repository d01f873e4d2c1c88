/**
 * The user documentation, README.md and the pages of docs/, as tests read it: each page with its fenced blocks. The word after a block's
 * language selects its test: `sh test` runs with guests, `sh operations` with a stand-in for a host.
 */
import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, resolve } from "node:path";
import { BINARY, type TestDaemon } from "./daemon.ts";

const ROOT = resolve(import.meta.dirname, "../..");
const FENCE = /^```(.*)\n([\s\S]*?)^```$/gm;

export interface Block {
  /** The text after the fence, such as `sh test`. */
  kind: string;
  text: string;
  /** The heading that it is under. */
  section: string;
  /** The line of its fence, from 1. */
  line: number;
}

export interface Page {
  /** Relative to the repository. */
  path: string;
  text: string;
  blocks: readonly Block[];
}

/** README.md, then every page of docs/ in order of name. */
export const PAGES: readonly Page[] = [
  "README.md",
  ...readdirSync(join(ROOT, "docs"))
    .filter((name) => name.endsWith(".md"))
    .sort()
    .map((name) => `docs/${name}`),
].map(readPage);

/** The SDK's own first page, which goes with its package. */
export const SDK_PAGE: Page = readPage("sdk/typescript/README.md");

/** One page; throws if it does not exist. */
export function pageAt(path: string): Page {
  const page = PAGES.find((each) => each.path === path);
  if (!page) throw new Error(`there is no page ${path}`);
  return page;
}

/** A page's blocks of one kind. */
export function blocksOf(page: Page, kind: string): Block[] {
  return page.blocks.filter((block) => block.kind === kind);
}

function readPage(path: string): Page {
  const text = readFileSync(join(ROOT, path), "utf8");
  const blocks = [...text.matchAll(FENCE)].map(({ index, 1: kind = "", 2: block = "" }) => {
    const before = text.slice(0, index);
    const section = [...before.replaceAll(FENCE, "").matchAll(/^#+ (.*)$/gm)].at(-1)?.[1] ?? "";
    return { kind, text: block, section, line: before.split("\n").length };
  });
  return { path, text, blocks };
}

/** The result of typing blocks of a page into one shell, one after another, in the environment that quickstart leaves. */
export async function typed(daemon: TestDaemon, path: string, blocks: readonly Block[], key: string = daemon.apiKey) {
  const script = blocks.map(({ line, text }) => `echo "--- ${path} line ${line}"\n${text}`);
  // Not on its standard input, which commands would read.
  const shell = Bun.spawn(["bash", "-e", "-o", "pipefail", "-c", script.join("\n")], {
    env: {
      ...daemon.env,
      PATH: `${dirname(BINARY)}:${daemon.env.PATH}`,
      HOME: daemon.home,
      ROOMD_URL: daemon.url,
      ROOMD_API_KEY: key,
    },
    stdin: "ignore",
    stdout: "pipe",
    stderr: "pipe",
  });
  const [status, printed, errors] = await Promise.all([shell.exited, shell.stdout.text(), shell.stderr.text()]);
  return { status, printed, errors };
}
