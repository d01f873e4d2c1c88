/** Owns path patterns: `/v1/rooms/{room_id}` as the router wants it, and its values out of a request's path. */

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

/** The parameters in a path, decoded; null when the path is another, or has an encoding that is none. */
export function matchPath(pattern: PathPattern, path: string): Record<string, string> | null {
  const parts = path.split("/");
  const params: [string, string][] = [];
  for (const [index, segment] of pattern.entries()) {
    const text = segment.rest ? parts.slice(index).join("/") : parts[index];
    if (text === undefined) return null;
    if (segment.name === null) {
      if (text !== segment.literal) return null;
      continue;
    }
    try {
      params.push([segment.name, decodeURIComponent(text)]);
    } catch {
      return null;
    }
  }
  return Object.fromEntries(params);
}
