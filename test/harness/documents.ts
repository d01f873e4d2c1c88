/**
 * The documents for people, README.md and the pages of docs/, as tests read them: each with its fenced blocks. The word after a
 * block's language says how it is tested: `sh test` is run with guests, `sh operations` on what stands for a host.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";

const ROOT = resolve(import.meta.dirname, "../..");
const FENCE = /^```(.*)\n([\s\S]*?)^```$/gm;

export interface Block {
  /** What stands after the fence, such as `sh test`. */
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
    .sort()
    .map((name) => `docs/${name}`),
].map(readPage);

/** The SDK's own first page, which goes with its package. */
export const SDK_PAGE: Page = readPage("sdk/typescript/README.md");

/** One page; throws where there is none. */
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
