/** Path patterns: `/v1/rooms/{room_id}` in the router's syntax, and its values in a request's path. */

interface Segment {
  literal: string | null;
  name: string | null;
  rest: boolean;
}

export type PathPattern = readonly Segment[];

export function parsePath(path: string): PathPattern {
  return path.split("/").map((text) => {
    const name = /^\{(\w+)(\*?)\}$/.exec(text);
    return name
      ? { literal: null, name: name[1] ?? null, rest: name[2] === "*" }
      : { literal: text, name: null, rest: false };
  });
}

/** Parameters are numbered, not named: two operations may name the same place differently. */
export function toRoute(pattern: PathPattern): string {
  return pattern.map((segment, index) => segment.literal ?? (segment.rest ? "*" : `:p${index}`)).join("/");
}

/** The parameters in a path, decoded; null if the path does not match or its encoding is invalid. */
export function matchPath(pattern: PathPattern, path: string): Record<string, string> | null {
  const parts = path.split("/");
  const params: Record<string, string> = {};
  for (let index = 0; index < pattern.length; index++) {
    const { literal, name, rest } = pattern[index] as Segment;
    const text = rest ? parts.slice(index).join("/") : parts[index];
    if (text === undefined) return null;
    if (name === null) {
      if (text !== literal) return null;
      continue;
    }
    const value = decoded(text);
    if (value === null) return null;
    params[name] = value;
  }
  return params;
}

/** Rewrites a path of the pattern `from` to the pattern `to`, which has the same parameters. Encodings are unchanged. */
export function rewritePath(path: string, from: PathPattern, to: PathPattern): string {
  const parts = path.split("/");
  return to
    .map(({ literal, name }) => literal ?? parts[from.findIndex((segment) => segment.name === name)] ?? "")
    .join("/");
}

function decoded(text: string): string | null {
  if (!text.includes("%")) return text;
  try {
    return decodeURIComponent(text);
  } catch {
    return null;
  }
}
