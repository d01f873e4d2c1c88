/**
 * Owns the OpenAPI document as a page for people: each operation by its area, with its fields, a call by curl, what it answers and
 * what it refuses. One page without scripts, and with nothing from elsewhere, as its policy says.
 */
import { createHash } from "node:crypto";
import { VERSION } from "../../shared/version.ts";
import { STYLE } from "./docs-style.ts";
import { html, Markup } from "./markup.ts";
import { openapiDocument } from "./openapi.ts";

interface Schema {
  type?: string;
  enum?: unknown[];
  anyOf?: Schema[];
  items?: Schema;
  properties?: Record<string, Schema>;
  patternProperties?: Record<string, Schema>;
  required?: string[];
  description?: string;
  format?: string;
  pattern?: string;
  minimum?: number;
  maximum?: number;
  minLength?: number;
  maxLength?: number;
  minItems?: number;
  maxItems?: number;
}

interface Content {
  schema: Schema;
  example?: unknown;
  examples?: Record<string, unknown>;
}

interface Parameter {
  name: string;
  in: "path" | "query";
  required: boolean;
  description?: string;
  schema: Schema;
  example?: unknown;
}

interface Shown {
  operationId: string;
  summary: string;
  description?: string;
  tags: string[];
  security?: unknown[];
  "x-scope"?: string;
  parameters: Parameter[];
  requestBody?: { required: boolean; content: Record<string, Content> };
  responses: Record<string, { description: string; content?: Record<string, Content> }>;
}

interface Problem {
  summary: string;
  value: { status: number; retryable: boolean; hint: string | null };
}

/** What the page is made from. */
export interface OpenapiDocument {
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Shown>>;
  components: { examples: Record<string, Problem> };
}

interface Placed extends Shown {
  method: string;
  path: string;
}

const JSON_TYPE = "application/json";
const PROBLEM_TYPE = "application/problem+json";
const DEEPEST = 4;

export interface DocsPage {
  html: string;
  /** Of the header Content-Security-Policy. */
  policy: string;
}

/** The page of this daemon. */
export function docsPage(): DocsPage {
  const style = createHash("sha256").update(STYLE).digest("base64");
  return {
    html: renderDocs(openapiDocument(VERSION) as unknown as OpenapiDocument),
    policy: `default-src 'none'; style-src 'sha256-${style}'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'`,
  };
}

export function renderDocs({ info, paths, components }: OpenapiDocument): string {
  const areas = new Map<string, Placed[]>();
  for (const [path, methods] of Object.entries(paths)) {
    for (const [method, operation] of Object.entries(methods)) {
      const area = operation.tags.at(-1) ?? "";
      areas.set(area, [...(areas.get(area) ?? []), { ...operation, method: method.toUpperCase(), path }]);
    }
  }
  const page = html`<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>${info.title} ${info.version}: the interface</title>
<style>${new Markup(STYLE)}</style>
</head>
<body>
<nav aria-label="Operations">
${[...areas].map(([area, list]) => html`<h2>${area}</h2><ul>${list.map(linkTo)}</ul>\n`)}
<h2>errors</h2><ul><li><a href="#errors">All codes</a></li></ul>
</nav>
<main>
<h1>${info.title} <small>${info.version}</small></h1>
<p>${info.description} This page is made from <a href="/v1/openapi.json">the OpenAPI document</a>.</p>
<p>Every call but those marked open has the header <code>Authorization: Bearer key-…</code>. In the examples
<code>ROOMD_URL</code> is this service, and <code>ROOMD_API_KEY</code> a key. An <code>Idempotency-Key</code> on a POST makes it
safe to send again. Errors are <code>${PROBLEM_TYPE}</code>; their codes are <a href="#errors">listed below</a>.</p>
${[...areas.values()].flat().map(sectionOf)}
${errorsOf(components.examples)}
</main>
</body>
</html>
`;
  return page.text;
}

function linkTo({ operationId, summary }: Placed): Markup {
  return html`<li><a href="#${operationId}">${summary}</a></li>`;
}

function sectionOf(operation: Placed): Markup {
  const { operationId, summary, description, method, path, requestBody } = operation;
  const body = requestBody?.content[JSON_TYPE];
  const fields = [
    ...operation.parameters.map(({ name, in: where, required, schema, description: about }) =>
      rowOf(name, where, required, { ...schema, ...(about ? { description: about } : {}) }),
    ),
    ...(body ? rowsOf(body.schema, "body") : []),
  ];
  return html`<section id="${operationId}">
<h3>${summary}</h3>
<p><code><span class="method">${method}</span> ${path}</code> <span class="quiet">${operationId}, ${accessOf(operation)}</span></p>
${description ? html`<p>${description}</p>` : ""}
${fields.length > 0 ? tableOf("Fields", ["Field", "In", "Type", "About"], fields) : ""}
<h4>Example</h4>
<pre>${curlOf(operation)}</pre>
${Object.entries(operation.responses).map(([status, response]) => successOf(status, response))}
<h4>Errors</h4>
<p>${problemsOf(operation)}</p>
</section>
`;
}

function accessOf({ security, "x-scope": scope }: Shown): string {
  if (security?.length === 0) return "open to all";
  if (scope === "operator") return "the operator's key";
  return scope === undefined ? "any key" : `scope ${scope}`;
}

function tableOf(title: string, heads: string[], rows: readonly Markup[]): Markup {
  return html`<h4>${title}</h4>
<table><thead><tr>${heads.map((head) => html`<th scope="col">${head}</th>`)}</tr></thead><tbody>
${rows}</tbody></table>
`;
}

/** Fields of an object, those of the objects within it after it. */
function rowsOf(schema: Schema, where: string, prefix = "", depth = 1): Markup[] {
  return Object.entries(schema.properties ?? {}).flatMap(([name, inner]) => {
    const row = rowOf(prefix + name, where, (schema.required ?? []).includes(name), inner);
    const object = [inner, ...(inner.anyOf ?? [])].map((each) => each.items ?? each).find((each) => each.properties);
    const below = `${prefix}${name}${inner.items ? "[]" : ""}.`;
    return [row, ...(object && depth < DEEPEST ? rowsOf(object, where, below, depth + 1) : [])];
  });
}

function rowOf(name: string, where: string, required: boolean, schema: Schema): Markup {
  const about = [schema.description ?? "", ...rulesOf(schema)].filter(Boolean);
  return html`<tr><td><code>${name}</code>${required ? html` <span class="quiet">required</span>` : ""}</td><td>${where}</td><td>${typeOf(schema)}</td><td>${about.map((each, index) => html`${index > 0 ? html`<br>` : ""}${each}`)}</td></tr>
`;
}

function typeOf(schema: Schema): string {
  if (schema.anyOf) return [...new Set(schema.anyOf.map(typeOf))].join(" or ");
  if (schema.enum) return schema.enum.join(" · ");
  if (schema.type === "array") return `list of ${typeOf(schema.items ?? {})}`;
  return schema.format ?? schema.type ?? "anything";
}

/** What a value must keep to, in words. */
function rulesOf(schema: Schema): string[] {
  const { minimum, maximum, minLength, maxLength, minItems, maxItems, pattern, anyOf = [] } = schema;
  return [
    rangeOf("", minimum, maximum),
    rangeOf(" characters", minLength, maxLength),
    rangeOf(" items", minItems, maxItems),
    pattern === undefined ? "" : `Matches ${pattern}`,
    ...anyOf.flatMap(rulesOf),
  ].filter((rule, index, all) => rule !== "" && all.indexOf(rule) === index);
}

function rangeOf(what: string, least?: number, most?: number): string {
  if (least !== undefined && most !== undefined) return `${least} to ${most}${what}.`;
  if (least !== undefined) return `At least ${least}${what}.`;
  return most === undefined ? "" : `At most ${most}${what}.`;
}

/** A call as it is typed into a shell. */
function curlOf({ method, path, parameters, security, requestBody }: Placed): string {
  const told = (name: string) => String(parameters.find((each) => each.name === name)?.example ?? name);
  const query = parameters
    .filter((each) => each.in === "query" && each.example !== undefined)
    .map(({ name }) => `${name}=${encodeURIComponent(told(name))}`);
  const place = path.replaceAll(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(told(name)));
  const body = requestBody?.content[JSON_TYPE]?.example;
  return [
    `curl ${method === "GET" ? "" : `-X ${method} `}"$ROOMD_URL${place}${query.length > 0 ? `?${query.join("&")}` : ""}"`,
    ...(security?.length === 0 ? [] : [`-H "Authorization: Bearer $ROOMD_API_KEY"`]),
    ...(body === undefined ? [] : ["-H 'Content-Type: application/json'", `-d ${quoted(JSON.stringify(body))}`]),
    ...(requestBody && !requestBody.content[JSON_TYPE] ? ["--data-binary @notes.txt"] : []),
  ].join(" \\\n  ");
}

function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}

function successOf(status: string, { description, content = {} }: Shown["responses"][string]): Markup {
  const types = Object.keys(content).filter((type) => type !== PROBLEM_TYPE);
  if (Number(status) >= 400 && types.length === 0) return html``;
  const { schema, example } = content[JSON_TYPE] ?? {};
  const others = types.filter((type) => type !== JSON_TYPE);
  return html`<details><summary><code>${status}</code> ${description}${others.length > 0 ? `, also ${others.join(", ")}` : ""}</summary>
${example === undefined ? "" : html`<pre>${JSON.stringify(example, null, 2)}</pre>`}
${schema?.properties ? tableOf("Fields of the answer", ["Field", "In", "Type", "About"], rowsOf(schema, "answer")) : ""}
</details>
`;
}

function problemsOf({ responses }: Shown): Markup[] {
  return Object.entries(responses).flatMap(([status, { content }]) =>
    Object.keys(content?.[PROBLEM_TYPE]?.examples ?? {}).map(
      (code) => html`<a href="#error-${code}"><code>${status} ${code}</code></a> `,
    ),
  );
}

function errorsOf(problems: OpenapiDocument["components"]["examples"]): Markup {
  const rows = Object.entries(problems)
    .sort(([, one], [, other]) => one.value.status - other.value.status)
    .map(
      ([code, { summary, value }]) =>
        html`<tr id="error-${code}"><td><code>${code}</code></td><td>${value.status}</td><td>${value.retryable ? "yes" : "no"}</td><td>${summary}.${value.hint ? ` ${value.hint}` : ""}</td></tr>
`,
    );
  return html`<section id="errors">${tableOf("All error codes", ["Code", "Status", "Try again", "About"], rows)}</section>`;
}
