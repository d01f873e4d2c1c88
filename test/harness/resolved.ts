/** An OpenAPI document with references to shared schemas and responses replaced by their content, as tests use it. */
import type { Json } from "./json.ts";

const SHARED = /^#\/components\/(schemas|responses)\/([^/]+)$/;

/** The same document without references to shared schemas and answers; other references stay. No schema leads to itself. */
export function resolved(document: Json): Json {
  const known = new Map<string, Json>();
  const follow = (value: Json): Json => {
    if (Array.isArray(value)) return value.map(follow);
    if (typeof value !== "object" || value === null) return value;
    const { $ref, ...siblings } = value;
    const [, kind, name] = SHARED.exec($ref ?? "") ?? [];
    if (kind === undefined || name === undefined) {
      return Object.fromEntries(Object.entries<Json>(value).map(([key, inner]) => [key, follow(inner)]));
    }
    if (!known.has($ref)) known.set($ref, follow(document.components[kind][name]));
    return Object.keys(siblings).length > 0 ? { ...known.get($ref), ...siblings } : known.get($ref);
  };
  return follow(document);
}
