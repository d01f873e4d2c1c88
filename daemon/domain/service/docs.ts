/**
 * Owns the OpenAPI document as a page for people: where to begin, then each operation by its area, with its fields and headers, a call
 * by curl, what it answers and what it refuses; at the end all headers and errors. One page without scripts, and with nothing from elsewhere, as its policy says.
 */
import { createHash } from "node:crypto";
import { VERSION } from "../../../shared/version.ts";
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

interface Header {
  description: string;
  schema: Schema;
  example: unknown;
}

interface Reference {
  $ref: string;
}

interface Parameter {
  name: string;
  in: "path" | "query" | "header";
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
  /** Those that are references are headers. */
  parameters: (Parameter | Reference)[];
  requestBody?: { required: boolean; content: Record<string, Content> };
  responses: Record<string, Answer>;
}

interface Answer {
  description: string;
  headers: Record<string, Reference>;
  content?: Record<string, Content>;
}

interface Problem {
  summary: string;
  value: { status: number; retryable: boolean; hint: string | null };
}

/** What the page is made from. */
export interface OpenapiDocument {
  info: { title: string; version: string; description: string };
  paths: Record<string, Record<string, Shown>>;
  components: {
    parameters: Record<string, Header>;
    headers: Record<string, Header>;
    examples: Record<string, Problem>;
  };
}

interface Placed extends Omit<Shown, "parameters"> {
  parameters: Parameter[];
  /** Of the request. */
  headers: string[];
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
      areas.set(area, [...(areas.get(area) ?? []), placed(operation, method.toUpperCase(), path)]);
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
<h2>all</h2><ul><li><a href="#headers">All headers</a></li><li><a href="#errors">All error codes</a></li></ul>
</nav>
<main>
<h1>${info.title} <small>${info.version}</small></h1>
<p>${info.description} This page is made from <a href="/v1/openapi.json">the OpenAPI document</a>.</p>
<h2>Where to begin</h2>
<p>A <em>room</em> is the container of one run. In it each <em>agent</em> can have a <em>sandbox</em>, a virtual machine of its own; all of
them share the room's <em>drive</em>, which is <code>/mnt/drive</code> in each, and send each other <em>messages</em>.</p>
<ol>${FIRST_STEPS.map(([id, what]) => html`<li><a href="#${id}">${what}</a></li>`)}</ol>
<p>Every call but those marked open has the header <code>Authorization: Bearer key-…</code>. In the examples
<code>ROOMD_URL</code> is this service, and <code>ROOMD_API_KEY</code> a key: <code>roomd init</code> or <code>roomd key create</code> on the
host prints one. Where there is a GET there is a HEAD. An <a href="#header-Idempotency-Key">Idempotency-Key</a> on a POST makes it safe to
send again. Errors are <code>${PROBLEM_TYPE}</code>; their codes are <a href="#errors">listed at the end</a>, as all
<a href="#headers">headers</a> are. Clients ignore fields of an answer that they do not know: there may be more of them at any time.</p>
<p>Models have the same by MCP: Streamable HTTP at <code>/mcp</code>, with the same header; or <code>roomd mcp</code>, on standard input and
output.</p>
${[...areas].map(
  ([area, list]) => html`<h2 id="area-${area}">${area}</h2>
${list.map(sectionOf)}`,
)}
${headersOf(components)}
${errorsOf(components.examples)}
</main>
</body>
</html>
`;
  return page.text;
}

/** What a newcomer does first. */
const FIRST_STEPS: [operationId: string, what: string][] = [
  ["health", "See whether the service is ready."],
  ["room_create", "Create a room."],
  ["sandbox_create", "Create a sandbox in it, for an agent."],
  ["sandbox_exec", "Run a command in the sandbox."],
  ["fs_write", "Write to the drive, and read from it."],
  ["agent_send", "Send another agent a message."],
  ["room_destroy", "Destroy the room when the run is over."],
];

function placed({ parameters, ...operation }: Shown, method: string, path: string): Placed {
  return {
    ...operation,
    method,
    path,
    parameters: parameters.filter((each) => "name" in each),
    headers: parameters.flatMap((each) => ("$ref" in each ? [nameIn(each)] : [])),
  };
}

const nameIn = ({ $ref }: Reference) => $ref.slice($ref.lastIndexOf("/") + 1);

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
  const told = new Map<string, string>();
  return html`<section id="${operationId}">
<h3>${summary}</h3>
<p><code><span class="method">${method}</span> ${path}</code> <span class="quiet">${operationId}, ${accessOf(operation)}</span></p>
${description ? html`<p>${description}</p>` : ""}
${fields.length > 0 ? tableOf("Fields", ["Field", "In", "Type", "About"], fields) : ""}
<p><span class="quiet">Headers:</span> ${linksTo(operation.headers)}</p>
<h4>Example</h4>
<pre>${curlOf(operation)}</pre>
${Object.entries(operation.responses).map(([status, response]) => successOf(status, response, told))}
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

/** Fields of an object, those of the objects within it after it; `where` is empty for those of an answer. */
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
  const isOfAnswer = where === "";
  const mark = isOfAnswer === required ? "" : isOfAnswer ? "may be absent" : "required";
  return html`<tr><td><code>${name}</code>${mark ? html` <span class="quiet">${mark}</span>` : ""}</td>${isOfAnswer ? "" : html`<td>${where}</td>`}<td>${typeOf(schema)}</td><td>${about.map((each, index) => html`${index > 0 ? html`<br>` : ""}${each}`)}</td></tr>
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
  if (what !== "" && least === 1 && most === undefined) return "Not empty.";
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

/** `told` has the fields that answers before it had, with their status. */
function successOf(status: string, { description, headers, content = {} }: Answer, told: Map<string, string>): Markup {
  const codes = Object.keys(content[PROBLEM_TYPE]?.examples ?? {});
  const outcomes = description.split(", ").filter((each) => !codes.includes(each));
  if (outcomes.length === 0) return html``;
  const types = Object.keys(content).filter((type) => type !== PROBLEM_TYPE);
  const isJson = content[JSON_TYPE] !== undefined;
  const { schema, example } = content[JSON_TYPE] ?? content[types[0] ?? ""] ?? {};
  const shapes = (schema?.anyOf ?? [schema ?? {}]).filter(({ properties }) => properties);
  return html`<details><summary><code>${status}</code> ${outcomes.join(", ")}${types.length > 0 ? `: ${types.join(" or ")}` : ""}</summary>
<p><span class="quiet">Headers:</span> ${linksTo(Object.keys(headers))}</p>
${!isJson && shapes.length > 0 ? html`<p>Each line, or the data of each event:</p>` : ""}
${example === undefined ? "" : html`<pre>${typeof example === "string" ? example : JSON.stringify(example, null, isJson ? 2 : 0)}</pre>`}
${shapes.map((each) => fieldsOf(each, status, told))}
</details>
`;
}

function fieldsOf(schema: Schema, status: string, told: Map<string, string>): Markup {
  const text = JSON.stringify(schema);
  const before = told.get(text);
  if (before !== undefined) return html`<p>Its fields are those of <code>${before}</code>.</p>`;
  told.set(text, status);
  return tableOf("Fields of the answer", ["Field", "Type", "About"], rowsOf(schema, ""));
}

function linksTo(headers: readonly string[]): Markup[] {
  return headers.map((name) => html`<a href="#header-${name}"><code>${name}</code></a> `);
}

/** Of one name there may be two: what a request asks for, and what an answer tells. */
function headersOf({ parameters, headers }: OpenapiDocument["components"]): Markup {
  const names = [...new Set([...Object.keys(parameters), ...Object.keys(headers)])].sort();
  const rowsFor = (name: string) =>
    [
      ["request", parameters[name]],
      ["answer", headers[name]],
    ] as const;
  const rows = names.flatMap((name) =>
    rowsFor(name)
      .filter(([, header]) => header !== undefined)
      .map(([where, header], index) => {
        const { description = "", schema = {}, example } = header ?? {};
        const id = index === 0 ? html` id="header-${name}"` : "";
        return html`<tr${id}><td><code>${name}</code></td><td>${where}</td><td>${typeOf(schema)}</td><td>${description} For example <code>${String(example)}</code></td></tr>
`;
      }),
  );
  return html`<section id="headers">${tableOf("All headers", ["Header", "In", "Type", "About"], rows)}</section>`;
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
        html`<tr id="error-${code}"><td><code>${code}</code></td><td>${value.status}</td><td>${value.retryable ? "yes" : "no"}</td><td>${summary}.${value.hint ? ` ${value.hint}` : ""}<details><summary>Example</summary><pre>${JSON.stringify(value, null, 2)}</pre></details></td></tr>
`,
    );
  return html`<section id="errors">${tableOf("All error codes", ["Code", "Status", "Try again", "About"], rows)}</section>`;
}
