/**
 * Parser of the arguments of a Dockerfile's instructions: words, quotes, escapes, and variables (docs.docker.com/reference/dockerfile,
 * "Environment replacement"). Pure.
 */

export type Variables = Readonly<Record<string, string>>;

/** Names are untrusted: inherited properties of objects are not variables. */
export const variableOf = (variables: Variables, name: string): string | undefined =>
  Object.hasOwn(variables, name) ? variables[name] : undefined;

/** A variable that repeatedly contains itself twice grows without limit. */
const MAX_CHARACTERS = 65_536;

/** Nesting limit of variables that stand for other unset variables: each level scans for its end from its own start. */
const MAX_LEVELS = 16;

/** Syntax error; the message continues the instruction's name. */
export class Unreadable extends Error {}

/** Limit for the values of all variables of one Dockerfile together: one of 60,000 characters may occur in it 60,000 times. */
const MAX_EXPANDED_CHARACTERS = 1024 * 1024;

/** Budget for the expanded variables of a Dockerfile. */
export class Expansion {
  #left = MAX_EXPANDED_CHARACTERS;

  /** Returns the value. Throws Unreadable if all are too long together. */
  take(value: string): string {
    this.#left -= value.length;
    if (this.#left < 0)
      throw new Unreadable(`has variables of more than ${MAX_EXPANDED_CHARACTERS} characters together`);
    return value;
  }
}

export interface Reading {
  variables: Variables;
  expansion: Expansion;
  /** The escape character. */
  escaper?: string;
}

/** Splits a text into words, without quotes and with variables expanded. */
export const wordsOf = (text: string, reading: Reading): string[] => read(text, reading, /\s/);

/** The whole text as one word. */
export const wordOf = (text: string, reading: Reading): string => read(text, reading, null).join("");

function read(text: string, reading: Reading, between: RegExp | null, level = 0): string[] {
  const { escaper = "\\" } = reading;
  if (level > MAX_LEVELS) throw new Unreadable(`has a variable within more than ${MAX_LEVELS} others`);
  const words: string[] = [];
  let word: string | null = null;
  let quote = "";
  for (let at = 0; at < text.length; at++) {
    if (word !== null && word.length > MAX_CHARACTERS)
      throw new Unreadable(`has a word of more than ${MAX_CHARACTERS} characters`);
    const char = text[at] as string;
    if (quote === "'") {
      if (char === "'") quote = "";
      else word += char;
    } else if (char === escaper && at + 1 < text.length) {
      const next = text[++at] as string;
      // Between double quotes the escape character is literal, except before characters with a meaning there.
      word = (word ?? "") + (quote !== "" && !`"$${escaper}`.includes(next) ? char : "") + next;
    } else if (char === quote) quote = "";
    else if (quote === "" && (char === '"' || char === "'")) {
      quote = char;
      word ??= "";
    } else if (char === "$") {
      const { value, end } = variableAt(text, at, reading, level);
      word = (word ?? "") + value;
      at = end - 1;
    } else if (quote === "" && between?.test(char)) {
      if (word !== null) words.push(word);
      word = null;
    } else word = (word ?? "") + char;
  }
  if (quote !== "") throw new Unreadable(`has a ${quote} that is not closed`);
  if (word !== null && word.length > MAX_CHARACTERS)
    throw new Unreadable(`has a word of more than ${MAX_CHARACTERS} characters`);
  if (word !== null) words.push(word);
  return words;
}

const PLAIN = /\$([A-Za-z_]\w*)/y;

/** The value of the variable at `at`, and the position after it. */
function variableAt(text: string, at: number, reading: Reading, level: number): { value: string; end: number } {
  const { variables, expansion, escaper = "\\" } = reading;
  PLAIN.lastIndex = at;
  const [plain, name = ""] = PLAIN.exec(text) ?? [];
  if (plain) return { value: expansion.take(variableOf(variables, name) ?? ""), end: at + plain.length };
  if (text[at + 1] !== "{") return { value: "$", end: at + 1 };
  const end = closing(text, at + 2, escaper);
  const [, of = "", operator = "", rest = ""] =
    /^([A-Za-z_]\w*)(?:(:?[-+])(.*))?$/s.exec(text.slice(at + 2, end)) ?? [];
  if (of === "") throw new Unreadable(`has ${text.slice(at, end + 1)}, which is not supported`);
  const known = variableOf(variables, of);
  const itself = () => expansion.take(known ?? "");
  const isThere = operator.startsWith(":") ? known !== undefined && known !== "" : known !== undefined;
  const other = () => read(rest, reading, null, level + 1).join("");
  if (operator.endsWith("-")) return { value: isThere ? itself() : other(), end: end + 1 };
  if (operator.endsWith("+")) return { value: isThere ? other() : "", end: end + 1 };
  return { value: itself(), end: end + 1 };
}

function closing(text: string, from: number, escaper: string): number {
  let depth = 1;
  for (let at = from; at < text.length; at++) {
    if (text[at] === escaper) at++;
    else if (text[at] === "{") depth++;
    else if (text[at] === "}" && --depth === 0) return at;
  }
  throw new Unreadable("has a ${ that is not closed");
}
