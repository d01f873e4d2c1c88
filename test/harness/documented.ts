/** Checks an answer's headers against the OpenAPI document, for the tests: undocumented headers, and missing required ones. */
import { inlineDocument } from "../../daemon/domain/service/openapi.ts";
import type { Json } from "./json.ts";

/** Headers of HTTP itself, and the media type, which the document describes as the content. */
const OF_HTTP = ["connection", "content-length", "content-type", "date", "transfer-encoding"];
const OF_UPGRADE = ["sec-websocket-accept", "upgrade"];

/** `response` is the document's response of that status, `known` are its components' headers. */
export function headerFaults(response: Json, known: Json, headers: Headers): string[] {
  const documented = Object.keys(response.headers);
  const names = new Set(documented.map((name) => name.toLowerCase()));
  const undocumented = [...headers.keys()].filter((name) => ![...names, ...OF_HTTP, ...OF_UPGRADE].includes(name));
  const absent = documented.filter((name) => known[name].required && !headers.has(name));
  return [...undocumented.map((name) => `${name} is not documented`), ...absent.map((name) => `${name} is missing`)];
}

const { paths, components } = inlineDocument("v1") as Json;
const routes = Object.entries<Json>(paths)
  .map(([path, methods]) => ({
    // The rest of a path has slashes too.
    pattern: new RegExp(
      `^${path
        .replaceAll(".", "\\.")
        .replace(/\{path\}$/, ".+")
        .replaceAll(/\{\w+\}/g, "[^/]+")}$`,
    ),
    methods,
    // Of two that fit, the one with fewer names.
    names: path.split("{").length,
  }))
  .sort((one, other) => one.names - other.names);

/** Faults of an answer's headers; empty if the answer is not an operation's. */
export function undocumented(method: string, url: string, { status, headers }: Response): string[] {
  const { pathname } = new URL(url);
  const operation = routes.find(({ pattern }) => pattern.test(pathname))?.methods[methodKey(method)];
  const response = operation?.responses[status];
  return response ? headerFaults(response, components.headers, headers) : [];
}

const methodKey = (method: string) => (method === "HEAD" ? "get" : method.toLowerCase());
