/** Prose of the repository by folder: comments of code and text of pages, without code, and how often it has words that CONTRIBUTING.md avoids. */
import { filesOf, read, type Source } from "./sources.ts";

/** A line of prose, at `path:line`. */
interface Line {
  at: string;
  text: string;
}

/** Phrases that have a standard term; each occurrence counts. */
const BANNED = [
  /\bwhom\b|\bwhoever\b|\b(some|any|no)body\b/gi,
  /\bstand(s|ing)? still\b|\banew\b|\bat once\b|\bjust now\b|\ball the same\b|\bfor good\b|\bon record\b/gi,
  /\b(is|are|was|were|be|been) told\b|\btold of\b|\bhears?\b|\b(goes|went|gone|going) on\b/gi,
  /(?<!there )\b(is|are) none\b|\bwhere there (is|are) none\b|\bputs? (\w+ )*aside\b|\blets? (\w+ )?in\b/gi,
  /\btried again\b|\bthe one before\b|\bturn(s|ed)? back\b|\btaken over\b|\bgiven up\b/gi,
  /(^|[.:] )(What|Who) [a-z]+/g,
  /^Owns (what|how|who|whom|where|when|whether|which|that)\b/g,
];
/** Words with bounded density, since each has a proper use. */
const DENSE = {
  what: /\bwhat\b/gi,
  who: /\bwho(se)?\b/gi,
  say: /\bsa(y|ys|id)\b/gi,
  ask: /\bask(s|ed)?\b/gi,
  where: /\bwhere\b/gi,
  "one that": /\b(one|those) that\b/gi,
};

/** Counts of a folder. */
export type Counts = { words: number; banned: number } & Record<keyof typeof DENSE, number>;

const PARTS =
  /"(?:\\.|[^"\\\n])*"|'(?:\\.|[^'\\\n])*'|`(?:\\[\s\S]|[^`\\])*`|\/\*([\s\S]*?)\*\/|(?<=^|\s)\/\/([^\n]*)/g;

function commentsOf({ path, text }: Source): Line[] {
  return [...text.matchAll(PARTS)].flatMap((match) => {
    const comment = match[1] ?? match[2];
    if (comment === undefined) return [];
    const first = text.slice(0, match.index).split("\n").length;
    return comment.split("\n").map((line, index) => ({
      at: `${path}:${first + index}`,
      text: line.replace(/^[\s*]+/, ""),
    }));
  });
}

/** Without fenced blocks, which are code. */
function proseOf({ path, text }: Source): Line[] {
  const prose = text.replace(/^```[\s\S]*?^```$/gm, (block) => block.replace(/[^\n]/g, ""));
  return prose.split("\n").map((line, index) => ({ at: `${path}:${index + 1}`, text: line.replace(/^[\s#*|-]+/, "") }));
}

/** Names in code are no prose. */
const withoutCode = ({ at, text }: Line): Line => ({
  at,
  text: text.replace(/`[^`]*`|\{@link [^}]*\}|https?:\S+/g, "`"),
});

/** The folder of a path that has a separate budget. */
function folderOf(path: string): string {
  const parts = path.split("/").slice(0, -1);
  const depth = path.startsWith("daemon/domain/") ? 3 : /^(daemon|test|sdk|docs)\//.test(path) ? 2 : 1;
  return parts.slice(0, depth).join("/") || ".";
}

/** Lines of prose by folder. */
export function proseByFolder(): Map<string, Line[]> {
  const code = filesOf("daemon", "guest-agent", "shared", "sdk/typescript/src", "test").filter((path) =>
    /\.tsx?$/.test(path),
  );
  const pages = [...filesOf("docs"), "README.md", "CONTRIBUTING.md", "daemon/README.md", "test/README.md"].filter(
    (path) => path.endsWith(".md") && path !== "docs/reference.md",
  );
  const found = new Map<string, Line[]>();
  const add = (path: string, lines: Line[]) => {
    const folder = folderOf(path);
    found.set(folder, [...(found.get(folder) ?? []), ...lines.map(withoutCode)]);
  };
  for (const path of code) if (!path.startsWith("test/house/")) add(path, commentsOf(read(path)));
  for (const path of pages) add(path, proseOf(read(path)));
  return found;
}

const countOf = (text: string, pattern: RegExp) => text.match(pattern)?.length ?? 0;
const bannedIn = (text: string) => BANNED.reduce((sum, pattern) => sum + countOf(text, pattern), 0);

export function countsOf(lines: readonly Line[]): Counts {
  const counts = { words: 0, banned: 0, what: 0, who: 0, say: 0, ask: 0, where: 0, "one that": 0 };
  for (const { text } of lines) {
    counts.words += countOf(text, /[A-Za-z][A-Za-z'’-]*/g);
    counts.banned += bannedIn(text);
    for (const [word, pattern] of Object.entries(DENSE)) counts[word as keyof typeof DENSE] += countOf(text, pattern);
  }
  return counts;
}

/** Lines with a banned phrase, or with the word of a bounded kind, as `path:line: text`. */
export function linesWith(lines: readonly Line[], kind: string): string[] {
  const pattern = DENSE[kind as keyof typeof DENSE];
  return lines
    .filter(({ text }) => (pattern ? countOf(text, pattern) : bannedIn(text)) > 0)
    .map(({ at, text }) => `${at}: ${text.trim().slice(0, 120)}`);
}
